"""Findings of one cause are reported as one, and every check keeps its own verdict."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune import checks
from nodetune.api.device import Device
from nodetune.api.model import (
    COSTS,
    NOT_COLLECTED,
    SEVERITIES,
    Check,
    Each,
    Finding,
    HostFacts,
    HostResult,
    Unread,
    Value,
)
from nodetune.api.remedies import manual
from nodetune.audit import summary
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.audit.summary import OneCause
from nodetune.facts import document

MACHINE = Path(__file__).parents[2] / "data" / "synthetic" / "hgx-h200-untuned.json"
LEADER, PARTS = (
    "tcp-rmem-below-bandwidth",
    ("rmem-max-below-bandwidth", "tcp-wmem-below-bandwidth", "wmem-max-below-bandwidth"),
)
WITH_PARTS = [each for each in checks.load_all() if each.part_of]
PART = Check(accept=1, severity="low", remedy=manual("x"), id="part", part_of="leader")


def judged(*select):
    facts = document.load(MACHINE)
    return Auditor(Selection(select=select)).audit(HostResult("node", "ok", facts=facts))


def findings(leader="fail", part="fail", **more):
    return Finding("leader", leader, "low", observed="1"), Finding("part", part, "low", **{"observed": "2", **more})


def test_four_buffers_that_are_too_small_are_one_finding():
    result = judged("network")
    shown = {each.check: each for each in result.causes()}
    assert LEADER in shown
    assert not set(PARTS) & set(shown)
    assert all(part in shown[LEADER].reason for part in PARTS)
    assert shown.keys() < {each.check for each in result.failing()}


def test_the_summary_counts_findings_of_one_cause_once():
    result = judged("network")
    counted = summary.summarise([result])
    assert sum(counted.failing.values()) == len(list(result.causes()))
    assert counted.statuses["fail"] == len(list(result.failing()))


def test_every_part_keeps_its_own_fix():
    parts = [each for each in judged("network").failing() if each.part_of == LEADER]
    assert len(parts) == len(PARTS)
    assert all(each.fix for each in parts)


def test_a_part_selected_alone_stands_alone():
    (found,) = judged(PARTS[0]).causes()
    assert (found.check, found.part_of) == (PARTS[0], "")


@pytest.mark.parametrize(
    "given",
    [
        findings(leader="pass"),
        findings(leader="waived"),
        findings(part="pass"),
        (findings()[0], Finding("part", "fail", "high")),
        findings(gates=True),
    ],
)
def test_a_part_stands_alone_where_the_leader_says_too_little(given):
    assert OneCause([PART]).joined(given) == given


def test_hosts_with_the_same_findings_share_the_joined_ones():
    causes, given = OneCause([PART]), findings()
    first, again = causes.joined(given), causes.joined(given)
    assert first == again
    assert all(one is other for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("check", WITH_PARTS, ids=lambda check: check.id)
def test_a_part_names_checks_that_may_report_it(check):
    for leader in map(checks.load, check.leaders):
        assert SEVERITIES.index(check.severity) <= SEVERITIES.index(leader.severity), leader.id
        assert check.id not in above(leader), "each leads to another in the end"


def above(check):
    """All checks that may report this one, or a check that may."""
    return {each for name in check.leaders for each in (name, *above(checks.load(name)))}


# By device: an Xid is known by its address, what the driver says of a GPU by its index.

XID, RECOVERY, ROWS = "gpu-xid-hardware", "gpu-recovery-needed", "gpu-row-remap-pending"
BDFS = {f"GPU{number}": f"0000:{number}1:00.0" for number in range(4)}
DOUBLE_BIT = "Double Bit ECC Error"


def each(values):
    return Each({gpu: Value(value) for gpu, value in values.items()})


def broken(xids=(), reset=(), rows=()):
    """The audit of a host with four GPUs, of which these have an Xid 48, need a reset, have rows to remap."""
    events = [{"bdf": BDFS[gpu], "xid": 48, "time": 9.0, "text": DOUBLE_BIT, "process": None} for gpu in xids]
    facts = {
        "gpu.count": Value(4),
        "gpu.bdf": each(BDFS),
        "gpu.uuid": each({gpu: f"GPU-{gpu}" for gpu in BDFS}),
        "gpu.access": each(dict.fromkeys(BDFS, "ok")),
        "gpu.recovery_action": each({gpu: "reset the GPU" if gpu in reset else "none" for gpu in BDFS}),
        "gpu.remapped_rows": each({gpu: {"pending": gpu in rows} for gpu in BDFS}),
        "pci.gpus": Value(list(BDFS.values())),
        "xid.events": Value(events),
        "xid.fallen_off_bus": Value([]),
    }
    audit = Auditor(Selection(select=(XID, RECOVERY, ROWS)))
    return audit.audit(HostResult("node", "ok", facts=HostFacts("node", facts)))


def by_check(result):
    return {found.check: found for found in result.failing()}


def test_faults_of_one_gpu_by_index_and_address_are_one_finding():
    result = broken(["GPU3"], ["GPU3"], ["GPU3"])
    (cause,) = result.causes()
    assert cause.check == RECOVERY
    assert f"{XID} (Xid 48 double-bit ECC error)" in cause.reason
    assert f"{ROWS} (yes)" in cause.reason
    assert {found.part_of for found in result.failing()} == {"", RECOVERY}


def test_the_same_faults_of_two_gpus_are_two_findings():
    result = broken(["GPU1"], ["GPU3"])
    assert [found.check for found in result.causes()] == [found.check for found in result.failing()] != []
    assert not any(found.reported_by or "with it" in found.reason for found in result.failing())


def test_what_one_gpu_shares_is_left_out_and_the_rest_is_shown():
    result = broken(["GPU1", "GPU3"], ["GPU3"])
    found = by_check(result)[XID]
    assert (found.part_of, dict(found.reported_by)) == ("", {BDFS["GPU3"]: RECOVERY})
    assert set(found.subjects) == {BDFS["GPU1"], BDFS["GPU3"]}
    assert summary.seen(result, found) == "GPU1 0000:11:00.0: Xid 48 double-bit ECC error"


def nccl(value):
    line = {"name": "NCCL_BUFFSIZE", "value": value, "file": "/etc/nccl.conf", "line": 1, "scope": "file"}
    return {"nccl.settings": Value([line])}


PLANTED = {
    "gpu-ecc-change-pending": ("gpu-ecc-off", {"gpu.ecc_mode_pending": ("GPU3", "disabled")}),
    "gpu-power-limit-lowered": ("gpu-power-limit-unequal", {"gpu.power_management_limit": ("GPU3", 500_000)}),
    "gpu-pcie-generation-reduced": (
        "gpu-pcie-width-reduced",
        {
            "gpu.curr_pcie_link_generation": ("GPU3", 3),
            "gpu.curr_pcie_link_width": ("GPU3", 8),
            "gpu.performance_state": ("GPU3", 0),
            "gpu.clocks_event_reasons": ("GPU3", []),
        },
    ),
    "mig-mode-unequal": ("mig-without-instances", {"gpu.mig_mode": ("GPU3", "enabled")}),
}


@pytest.mark.parametrize("part", PLANTED)
def test_a_planted_fault_of_one_gpu_is_one_finding(part):
    leader, planted = PLANTED[part]
    machine = document.load(MACHINE.with_name("hgx-h200-tuned.json"))
    facts = dict(machine.facts)
    for name, (gpu, value) in planted.items():
        facts[name] = Each({**facts[name].of, gpu: Value(value)})
    found = by_check(Auditor(Selection()).result(replace(machine, facts=facts)))
    assert (found[leader].status, found[part].status, found[part].part_of) == ("fail", "fail", leader)
    assert part in found[leader].reason


def test_a_forced_setting_with_a_bad_value_is_one_finding():
    facts = {**document.load(MACHINE).facts, **nccl("4M")}
    found = by_check(Auditor(Selection()).result(HostFacts("node", facts)))
    assert found["nccl-tuning-forced"].part_of == "nccl-value-invalid"


def test_evidence_of_evidence_stands_below_the_first_cause():
    found = by_check(broken(["GPU0", "GPU1"], ["GPU0"], ["GPU0", "GPU1"]))
    assert dict(found[ROWS].reported_by) == {"GPU0": RECOVERY, "GPU1": XID}
    assert f"{ROWS} (GPU1: yes)" in found[XID].reason


def test_a_lost_gpu_and_the_xid_of_its_address_are_one_finding():
    facts = {
        "gpu.count": Value(2),
        "gpu.bdf": Each({"GPU0": Value("0000:01:00.0"), "GPU1": Unread("GPU is lost")}),
        "gpu.access": each({"GPU0": "ok", "GPU1": "GPU is lost"}),
        "pci.gpus": Value(["0000:01:00.0", "0000:11:00.0"]),
        "xid.events": Value([{"bdf": "0000:11:00.0", "xid": 79, "time": 9.0, "text": "lost", "process": None}]),
        "xid.fallen_off_bus": Value([]),
    }
    audit = Auditor(Selection(select=(XID, "gpu-lost")))
    result = audit.audit(HostResult("node", "ok", facts=HostFacts("node", facts)))
    (cause,) = result.causes()
    assert cause.check == "gpu-lost"
    assert f"{XID} (Xid 79" in cause.reason
    assert summary.seen(result, cause).startswith("GPU1 0000:11:00.0: ")


@pytest.mark.parametrize("words", ["GPU3", "0000:31:00.0"])
def test_a_gpu_is_found_by_its_index_and_by_its_address(words):
    result = broken(["GPU3"], [])
    assert all(words in summary.observed(result, found) for found in result.failing())
    assert [(one.name, one.address, one.uuid) for one in result.devices] == [("GPU3", "0000:31:00.0", "GPU-GPU3")]


def test_the_names_of_devices_are_collected_with_one_check():
    assert {"gpu.bdf", "gpu.uuid", "gpu.serial"} <= Selection(select=(XID,)).facts()
    assert "gpu.uuid" not in Selection(profiles=("base",), select=("swap-large",)).facts()


LEADERS = [
    replace(PART, part_of=("leader", "first")),
    replace(PART, id="leader", part_of=("first",)),
    replace(PART, id="other", part_of=("part",)),
]
DEVICES = (Device("a", "b"), Device("c", "x"))


def made_up(seed):
    """Findings of any status and severity about some of four devices, and whether these are known by two names."""
    some = random.Random(seed)
    given = tuple(
        Finding(
            check,
            some.choice(["fail", "fail", "fail", "pass", "unknown", "waived"]),
            some.choice(SEVERITIES),
            observed="seen",
            subjects={name: some.choice("xy") for name in some.sample("abcd", some.randint(0, 3))},
            gates=some.random() < 0.3,
        )
        for check in ("part", "leader", "first", "other")
        if some.random() < 0.9
    )
    return given, some.choice([(), DEVICES])


@pytest.mark.parametrize("seed", range(500))
def test_grouping_loses_no_finding_and_no_exit_code(seed):
    given, devices = made_up(seed)
    joined = OneCause(LEADERS).joined(given, devices)
    bare = [replace(found, part_of="", reported_by={}, reason="") for found in joined]
    assert bare == list(given), "JSON has each with all its subjects"
    before, after = (HostResult("node", "ok", findings=each) for each in (given, joined))
    for level in (*SEVERITIES, "never"):
        codes = {summary.exit_code(summary.summarise([each]), level) for each in (before, after)}
        assert len(codes) == 1
    if any(found.gates for found in before.failing()):
        assert any(found.gates for found in after.causes()), "what holds jobs is shown"
    for found in joined:
        for leader in {found.part_of, *found.reported_by.values()} - {""}:
            (shown,) = (each for each in joined if each.check == leader)
            assert (shown.status, shown.part_of) == ("fail", "")
            assert found.check in shown.reason


def test_of_a_severity_hardware_comes_before_bandwidth_and_settings():
    found = [Finding(cost, "fail", severity, cost=cost) for severity in ("low", "high") for cost in COSTS]
    told = [(each.severity, each.cost) for each in sorted(found, key=lambda one: one.rank)]
    assert told == [(severity, cost) for severity in ("high", "low") for cost in ("hardware", "bandwidth", "setting")]


def test_who_acts_is_said_by_the_check():
    found = {each.check: each.who for each in judged().failing()}
    assert (found["gpu-recovery-needed"], found["swap-large"]) == ("repair", "apply")
    assert found["raid-degraded"] == "hand", "the array still works"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("/sys/x: permission denied: needs root (--become)", "permission"),
        (NOT_COLLECTED, "not collected"),
        ("not collected: the probe's time was over", "too long"),
        ("did not return within 3 s in nvmlInit", "too long"),
        ("/lib/modules/6.1/modules.dep: no such file or directory", "not there"),
        ("invalid answer of the driver", "other"),
    ],
)
def test_why_a_fact_is_unread_has_a_kind(reason, kind):
    assert summary.unread(reason) == kind

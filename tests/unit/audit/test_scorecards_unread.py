"""A criterion passes by facts that decide it, and by nothing else."""

import json
from dataclasses import replace

import pytest

from nodetune.api.model import Absent, Each, HostFacts, HostResult, Unread, Value
from nodetune.audit import scorecard_status, scorecards
from nodetune.audit.auditor import Auditor
from nodetune.audit.request import AGAINST
from nodetune.audit.selection import Selection
from nodetune.config import overlay
from nodetune.facts import document
from nodetune.foundation import yaml_lines
from tests.support import witnesses


def auditor(card, site=None):
    own = overlay.parse(yaml_lines.parse(site, "site.yml"), "site") if site else None
    return Auditor(Selection(site=own, against=card), witnesses.TODAY)


def whole(host, plant=None):
    return document.from_data({"host": host, "facts": {**witnesses.hosts()[host], **(plant or {})}})


def scored(card, facts, by=None):
    result = (by or auditor(card)).audit(HostResult(facts.host, "ok", facts=facts))
    return {each.criterion.name: each for each in scorecard_status.score(card, [result]).rows}


def status(name, id_, facts, site=None):
    card = scorecards.read(name)
    return scored(card, facts, auditor(card, site))[id_].status


@pytest.mark.slow
@pytest.mark.parametrize("host", witnesses.SYNTHETIC)
@pytest.mark.parametrize("name", AGAINST)
def test_without_one_of_its_facts_no_criterion_passes(name, host):
    card, facts = scorecards.read(name), whole(host)
    by = auditor(card)
    found = {each.check for each in by.result(facts).findings}
    resting = {
        id_: set().union(
            *(card.facts_of[each] for each in row.criterion.checks if each in found or each not in row.criterion.also)
        )
        for id_, row in scored(card, facts, by).items()
        if row.status == "pass"
    }
    assert resting
    for removed in sorted(set().union(*resting.values())):
        left = {fact: each for fact, each in facts.facts.items() if fact != removed}
        found = scored(card, HostFacts(host, left, facts.about), by)
        mine = {id_: found[id_].status for id_, named in resting.items() if removed in named}
        assert set(mine.values()) <= {"not judged", "fail"}, (removed, mine)


def test_no_health_check_in_slurm_conf_is_not_judged_where_a_prolog_runs():
    facts = whole("hgx-h200-tuned")
    settings = {**facts.facts["slurm.config"].value["settings"], "prolog": "/etc/slurm/prolog"}
    assert status("clustermax", "healthcheck-program", facts) == "pass"
    del settings["healthcheckprogram"]
    without = replace(facts, facts={**facts.facts, "slurm.config": Value({"settings": settings})})
    for name, id_ in (("clustermax", "healthcheck-program"), ("settings", "slurm.healthcheck")):
        assert status(name, id_, without) == "not judged"


def test_a_check_that_is_off_decides_nothing_until_a_site_switches_it_on():
    facts, on = whole("hgx-h200-tuned"), json.dumps({"checks": {"dcgm-exporter-not-running": True}})
    row = scored(scorecards.read("clustermax"), facts)["monitoring-stack"]
    assert (row.status, row.why) == ("not judged", "dcgm-exporter-not-running is off: switch it on in your site file")
    assert status("clustermax", "monitoring-stack", facts, on) == "fail"
    running = {**facts.facts, "services.processes": Value({"nv-hostengine": 1, "dcgm-exporter": 1})}
    assert status("clustermax", "monitoring-stack", replace(facts, facts=running), on) == "pass"


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("health-validation", "nvlink_capabilities"),
        ("health-validation", "gpu_power_state"),
        ("health-validation", "rdma_linkflap_fatal"),
        ("ai-cloud", "BMAAS07"),
        ("ai-cloud", "SLURM05"),
        ("clustermax", "prolog-fast"),
        ("settings", "rdma.subnet_manager"),
    ],
)
def test_what_no_fact_decides_fails_or_is_not_judged(name, id_):
    card, facts = scorecards.read(name), whole("hgx-h200-tuned")
    row = scored(card, facts)[id_]
    assert row.status == "not judged"
    assert row.why == row.criterion.why != ""
    planted = witnesses.witness(row.criterion.checks[0], "fail")
    assert status(name, id_, whole(planted.host, planted.plant)) == "fail"


@pytest.mark.parametrize(
    ("name", "of_virtual", "of_metal"),
    [
        ("ai-cloud", ["VMAAS06", "VMAAS07"], ["BMAAS07", "BMAAS08", "BMAAS01, BMAAS02, BOOT04"]),
        ("settings", ["vm.relaxed_ordering", "vm.nvme_latency_tuning"], ["bios.smt", "bios.iommu"]),
        ("clustermax", ["vm-iommu-passthrough"], []),
    ],
)
def test_criteria_of_virtual_machines_do_not_apply_on_bare_metal_and_the_reverse(name, of_virtual, of_metal):
    card = scorecards.read(name)
    metal, virtual = scored(card, whole("hgx-h200-tuned")), scored(card, whole("h100-x2"))
    assert {metal[id_].status for id_ in of_virtual} == {"skip"}
    assert {virtual[id_].status for id_ in of_metal} <= {"skip"}
    assert "skip" not in {metal[id_].status for id_ in of_metal if id_ != "bios.smt"}
    assert metal[of_virtual[0]].why == "not a virtual machine"


@pytest.mark.parametrize(
    ("name", "id_"),
    [("health-validation", "gpu_xid_critical"), ("clustermax", "xid-monitoring"), ("settings", "gpu.xid")],
)
def test_a_log_that_was_cut_passes_no_criterion_of_it(name, id_):
    facts = whole("hgx-h200-tuned")
    assert status(name, id_, facts) == "pass"
    cut = {**facts.facts["xid.log"].value, "since_s": facts.facts["host.uptime_s"].value - 1800}
    row = scored(scorecards.read(name), replace(facts, facts={**facts.facts, "xid.log": Value(cut)}))[id_]
    assert row.status == "not judged"
    assert "not seen since" in row.why


def test_one_unread_device_of_many_passes_no_criterion():
    facts = whole("hgx-h200-tuned")
    lost = {**facts.facts["gpu.ecc_mode"].of, "GPU5": Unread("lost")}
    row = scored(scorecards.read("checklist"), replace(facts, facts={**facts.facts, "gpu.ecc_mode": Each(lost)}))["63"]
    assert (row.status, "lost" in row.why) == ("not judged", True)


def test_a_thing_that_a_host_lacks_is_read():
    facts = whole("hgx-h200-tuned")
    nothing = replace(facts, facts={**facts.facts, "memory.swaps": Value({}), "services.nodetune-gpu": Absent()})
    assert status("settings", "memory.swap_present", nothing) == "pass"


PLANTS = {
    "17": "prolog-failure-holds-job", "25": "host-memory-small-for-gpus", "26": "nccl-transport-disabled",
    "29": "bmc-reports-fault", "36": "nvlink-speed-unequal", "37": "gpu-fabric-clique-unequal", "39": "nccl-older-than-gpus",
    "44": "governor-not-performance", "45": "swap-large", "47": "thread-pinning-for-all", "48": "gpu-program-on-far-cpus",
    "49": "gpu-irqs-remote", "50": "thp-unsuitable", "51": "gpu-program-limits-small", "52": "driver-library-mismatch",
    "53": "gpu-persistence-mode-off", "54": "reserved-cores-not-named", "55": "read-ahead-small",
    "57": "containers-memlock-limited", "58": "numa-nodes-hidden", "59": "mps-not-as-wanted", "60": "mig-without-instances",
    "61": "mig-reset-blocked", "62": "gpu-applications-clock-low", "63": "gpu-ecc-change-pending", "64": "select-type-without-gpus",
    "65": "cores-not-constrained", "66": "fabricmanager-restarts", "71": "gds-without-configuration", "73": "lustre-statahead-off",
    "74": "nfs-caches-nothing", "76": "raid-degraded", "80": "nfs-read-ahead-small", "81": "smt-unexpected",
    "83": "shm-nearly-full", "98": "host-out-of-memory", "100": "gpu-xid-hardware", "148": "acs-redirects-peer-traffic",
    "149": "mtu-inconsistent", "150": "rps-with-many-queues", "151": "nccl-hca-selection-wrong", "153": "topology-file-missing",
    "154": "gpu-without-near-nic", "156": "roce-packets-discarded", "173": "gpu-memory-hot", "178": "bmc-temperature-high",
    "179": "gpu-power-limit-unequal",
}  # fmt: skip
"""Item of the checklist → a fault that it asks about."""


@pytest.mark.parametrize(("item", "check"), PLANTS.items())
def test_a_planted_fault_fails_its_item_of_the_checklist_alone(item, check):
    card, planted = scorecards.read("checklist"), witnesses.witness(check, "fail")
    by = auditor(card, None if planted.site is None else json.dumps({"checks": {check: planted.site}}))
    before, after = (
        {id_ for id_, row in scored(card, whole(planted.host, plant), by).items() if row.status == "fail"}
        for plant in ({}, planted.plant)
    )
    assert (after - before, before - after) == ({item}, set())


def test_the_checklist_has_its_items_by_number_and_by_whose_they_are():
    rows = scorecards.read("checklist").criteria
    assert [each.name for each in rows] == [str(number) for number in range(1, 181)]
    assert [sum(each.of == whose for each in rows) for whose in ("node", "job", "organisation")] == [70, 88, 22]
    assert len({witnesses.witness(check, "fail").host for check in PLANTS.values()}) >= 5
    assert not [each.name for each in rows if each.of == "node" and not (each.checks or each.why or each.shown)]

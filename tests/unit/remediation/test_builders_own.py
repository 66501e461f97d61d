"""What a host says that nodetune set there before is written again only where nodetune may have set it."""

import json

import pytest

from nodetune.api import remedies
from nodetune.api.model import Check, Each, HostFacts, HostResult, Unread, Value
from nodetune.audit import gpu_users
from nodetune.remediation import export, host_changes, plan, rollout
from nodetune.remediation.builders import block_queue, kernel_arg, limit, sysctl, sysfs
from nodetune.remediation.request import ApplyRequest
from tests.support.fixing import built, files, finding_of, refused

DEBIAN = {"host.os": Value({"id": "ubuntu", "version": "22.04", "like": ["debian"], "name": "Ubuntu"})}
GRUB = {"cmdline.installed": Value({"arguments": {}, "file": "/boot/grub/grub.cfg"})}
LINK = "/etc/systemd/network/00-nodetune-eth0.link"
NICS = {"net.links": Value({"eth0": {"bdf": "0000:18:00.0"}}), "own.links": Each({})}
RUNS = {"services.slurmd": Value({"active": "active", "enabled": "enabled"})}
LOGIND = remedies.systemd_dropin("logind.conf", "Login", "RemoveIPC")
DROP_IN = "/etc/systemd/logind.conf.d/zz-nodetune.conf"
SLURMD = "/etc/systemd/system/slurmd.service.d/zz-nodetune.conf"


def own(path, settings):
    return {path: f"# settings: {json.dumps(settings)}\n"}


def host(files=None, name="gpu01"):
    return HostFacts(name, {**DEBIAN, **GRUB, **NICS, **RUNS, "own.files": Value(files or {})})


def nested(depth):
    return json.loads('{"a":' * depth + "1" + "}" * depth)


SWAPPINESS = finding_of(remedies.sysctl("vm.swappiness"), 10)
IOMMU = finding_of(remedies.kernel_arg("iommu"), "pt")
RINGS = finding_of(remedies.net_link("rings"), "max", ("eth0",))
MEMLOCK = finding_of(remedies.limit("memlock"), "unlimited", ("login sessions", "slurmd"))
FOREIGN = {
    "another sysctl": (SWAPPINESS, sysctl.PATH, {"kernel.core_pattern": "|/tmp/x"}, "kernel.core_pattern"),
    "two lines": (
        SWAPPINESS,
        sysctl.PATH,
        {"vm.max_map_count": "1\nkernel.core_pattern = |/tmp/x"},
        "vm.max_map_count",
    ),
    "a line in a name": (SWAPPINESS, sysctl.PATH, {"vm.swappiness = 1\nkernel.x": "1"}, "kernel.x"),
    "nothing in a name": (SWAPPINESS, sysctl.PATH, {"kernel.x": {}}, "kernel.x"),
    "a text for a mapping": (SWAPPINESS, sysctl.PATH, nested(50), "a a a a"),
    "a command": (IOMMU, kernel_arg.PATH, {"iommu": "$(touch /tmp/x)"}, "iommu"),
    "another argument": (IOMMU, kernel_arg.PATH, {"init": "/tmp/x"}, "init"),
    "a command in a name": (IOMMU, kernel_arg.PATH, {'"; touch /tmp/x; "': "1"}, "touch"),
    "another path": (
        finding_of(remedies.sysfs("/sys/kernel/mm/ksm/run"), 0),
        sysfs.PATH,
        {"/etc/shadow": "x"},
        "/etc/shadow",
    ),
    "another limit": (MEMLOCK, limit.PATH, {"maxlogins": {"soft": 1}}, "maxlogins"),
    "a limit that is none": (MEMLOCK, limit.PATH, {"nofile": {"soft": "1\n* hard core 0"}}, "nofile"),
    "another key of a unit": (MEMLOCK, SLURMD, {"Service": {"ExecStartPre": "/tmp/x"}}, "ExecStartPre"),
    "a key of another unit": (finding_of(LOGIND, "no"), DROP_IN, {"Login": {"KillUserProcesses": "no"}}, "KillUser"),
    "a line that goes on": (finding_of(LOGIND, "no"), DROP_IN, {"Login": {"RemoveIPC": "no\\"}}, "RemoveIPC"),
    "a rule that runs": (
        finding_of(remedies.block_queue("scheduler"), "none", ("sda",)),
        block_queue.PATH,
        {"scheduler": {"sd*": 'none", RUN+="/tmp/x'}},
        "scheduler",
    ),
    "another module": (
        finding_of(remedies.modprobe("nouveau"), "blacklist"),
        "/etc/modprobe.d/nodetune-nouveau.conf",
        {"blacklist": ["x\ninstall y /tmp/x"]},
        "blacklist",
    ),
    "another module to load": (
        finding_of(remedies.module("ib_umad"), "loaded"),
        "/etc/modules-load.d/nodetune-ib_umad.conf",
        {"evil": "loaded"},
        "evil",
    ),
    "another match": (RINGS, LINK, {"match": {"OriginalName": "*"}}, "OriginalName"),
    "another section": (RINGS, LINK, {"sections": [["Match", [["OriginalName", "*"]]]]}, "sections"),
    "another key of a link": (RINGS, LINK, {"set": {"Name": "lo"}}, "Name"),
    "a governor that is none": (
        finding_of(remedies.cpufreq("boost"), True),
        "/etc/nodetune/cpu.conf",
        {"governor": 1},
        "governor",
    ),
    "another gpu setting": (
        finding_of(remedies.gpu("compute_mode"), "default", ("GPU0",)),
        "/etc/nodetune/gpu.conf",
        {"fan": {"0": "off"}},
        "fan",
    ),
}


def unavailable(finding):
    """Facts that a builder asks for beyond those above: absent."""
    wanted = host_changes.needs({finding.fix.kind}) - host().facts.keys()
    return dict.fromkeys(wanted, Value(None))


@pytest.mark.parametrize(("finding", "path", "settings", "says"), FOREIGN.values(), ids=list(FOREIGN))
def test_a_setting_that_no_check_makes_is_refused_by_name(finding, path, settings, says):
    facts = host(own(path, settings))
    why = refused(HostFacts("gpu01", {**unavailable(finding), **facts.facts}), finding)
    assert path in why
    assert says in why
    assert why.isprintable()


def test_what_other_kinds_of_fix_need_is_still_done():
    facts = host(own(kernel_arg.PATH, {"init": "/tmp/x"}))
    planned, ((finding, why),) = host_changes.build([SWAPPINESS, IOMMU], facts)
    assert (finding, "init" in why) == (IOMMU, True)
    assert [each.name for each in planned] == ["sysctl"]


def test_settings_of_checks_stay_and_so_do_those_of_the_site():
    site = Check(accept=1, severity="low", remedy=remedies.sysctl("kernel.panic"), fact="sysctl.kernel.panic")
    facts = host(own(sysctl.PATH, {"kernel.panic": "10", "vm.max_map_count": "5", "vm.dirty_ratio": "3"}))
    result = HostResult("gpu01", "ok", facts=facts, findings=(SWAPPINESS,))
    planned = plan.plan(result, site=(site,)).changes
    (text,) = files(each for change in planned for each in change.changes).values()
    assert "kernel.panic = 10\n" in text
    assert plan.plan(result).left_out, "without the site file nobody knows who wants it"


def test_a_file_with_a_deep_text_counts_as_empty():
    deep = {sysctl.PATH: "# settings: " + "[" * 30_000 + "]" * 30_000}
    assert "vm.swappiness = 10" in files(built(host(deep), SWAPPINESS))[sysctl.PATH]


@pytest.mark.parametrize("depth", [5, 200, 900])
def test_no_depth_of_settings_crashes_a_plan(depth):
    assert sysctl.PATH in refused(host({sysctl.PATH: "# settings: " + '{"a":' * depth + "1" + "}" * depth}), SWAPPINESS)


def test_own_files_that_the_gate_refused_stop_the_plan():
    facts = host()
    facts = HostFacts("gpu01", {**facts.facts, "own.files": Unread("not understood: a text is expected")})
    assert "not understood" in refused(facts, SWAPPINESS)


def test_saved_facts_without_own_files_are_planned():
    without = {name: fact for name, fact in host().facts.items() if name != "own.files"}
    assert built(HostFacts("gpu01", without), SWAPPINESS)


def test_the_lines_of_a_host_add_no_section_to_a_link_file():
    known = {"id_path": "pci-0000:18:00.0", "mac_address": None, "file": "/run/x.link"}
    known["sections"] = [["Match", [["OriginalName", "*"]]], ["Link", [["Name", "x"]]]]
    facts = HostFacts("gpu01", {**host().facts, "own.links": Each({"eth0": Value(known)})})
    assert "Match" in refused(facts, RINGS)


def test_no_export_holds_what_a_host_made_up(tmp_path):
    lies = {
        **own(kernel_arg.PATH, {"iommu": '$(touch "/tmp/x")"; touch /tmp/x; "'}),
        **own(sysctl.PATH, {"kernel.core_pattern": "|/bin/sh -c touch_planted"}),
    }
    found = [HostResult("liar", "ok", facts=host(lies, "liar"), findings=(SWAPPINESS, IOMMU))]
    found.append(HostResult("good", "ok", facts=host(name="good"), findings=(SWAPPINESS, IOMMU)))
    plans = [plan.plan(each) for each in found]
    export.write(tmp_path / "out", plans)
    texts = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert "core_pattern" not in texts
    assert "touch" not in "".join(path.read_text() for path in (tmp_path / "out/files").rglob("*") if path.is_file())
    assert [each.host for each in plans if each.changes] == ["good"]
    assert {found.check for found, _ in plans[0].left_out} == {SWAPPINESS.check}


def test_a_builder_that_fails_costs_only_its_own_host(monkeypatch):
    monkeypatch.setattr(sysctl, "changes", fails)
    assert "too deep" in refused(host(), SWAPPINESS)


def fails(*_):
    raise RecursionError("too deep")


@pytest.mark.parametrize(
    ("where", "name", "prepare"),
    [
        (host_changes, "build", plan.plan),
        (gpu_users, "busy", lambda result: rollout.prepare(result, ApplyRequest())),
    ],
)
def test_a_host_that_cannot_be_planned_is_named_and_others_go_on(where, name, prepare, monkeypatch):
    monkeypatch.setattr(where, name, fails)
    found = prepare(HostResult("gpu01", "ok", facts=host(), findings=(SWAPPINESS,)))
    assert (found.host, found.result.state, found.findings, found.changes) == ("gpu01", "bad facts", (), ())
    assert "no plan is possible from its facts: RecursionError('too deep')" in found.result.message

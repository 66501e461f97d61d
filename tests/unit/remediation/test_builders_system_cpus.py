"""From the wish for CPUs of system tasks to changes, and where it is refused because jobs would get those CPUs."""

import pytest

from nodetune import checks
from nodetune.api.facts_view import FactAbsentError
from nodetune.api.model import HostFacts, Value
from nodetune.api.remedies import system_cpus
from nodetune.remediation import host_changes, host_view
from nodetune.remediation.builders import _dropin
from tests.support.fixing import built, files, finding_of, of_kind, refused

GROUPS = ("init.scope", "system.slice", "user.slice")
PODS = {"kubepods.slice": {"cpus": "0-127", "count": 128}}
DROP_INS = {unit: _dropin.path_of(unit) for unit in GROUPS}


def host(own=None, **more):
    facts = {
        "containers.cgroup_v2": True,
        "containers.engines": ["containerd", "docker"],
        "cpu.allowed_cpus": {},
        "cpu.cpusets": PODS,
        "cpu.online": "0-127",
        "host.os": {"id": "ubuntu"},
        "kubernetes.present": True,
        "numa.nodes": {"0": {"cpus": "0-63"}, "1": {"cpus": "64-127"}},
        "own.files": own or {},
        "pci.devices": {"0000:18:00.0": {"numa_node": 1}},
        "pci.gpus": ["0000:18:00.0"],
        "slurm.present": False,
    } | {name.replace("__", "."): value for name, value in more.items()}
    return HostFacts("gpu01", {name: Value(value) for name, value in facts.items()})


def wish(value="0-3", subjects=GROUPS):
    return finding_of(system_cpus(), value, subjects, "system-tasks-cpus-unwanted")


def lines(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_each_group_gets_a_drop_in_and_systemd_reloads_once():
    changes = built(host(), wish())
    assert {path: lines(text) for path, text in files(changes).items()} == {
        DROP_INS["init.scope"]: ["[Scope]", "AllowedCPUs=0-3"],
        DROP_INS["system.slice"]: ["[Slice]", "AllowedCPUs=0-3"],
        DROP_INS["user.slice"]: ["[Slice]", "AllowedCPUs=0-3"],
    }
    frees = [f"free-cpus {unit}" for unit in GROUPS]
    assert [change["run"] for change in of_kind(changes, "run")] == ["daemon-reload", *frees]
    assert changes[-1]["change"] == "run"


def test_only_idle_gpus_see_systemd_reload():
    (group,), _ = host_changes.build([wish()], host())
    assert (group.disruption, group.guard) == ("daemon reload", {"gpu_idle": True})


def test_another_list_replaces_ours():
    first = files(built(host(), wish()))
    allowed = {unit: {"cpus": "0-3", "file": path, "line": 5} for unit, path in DROP_INS.items()}
    second = files(built(host(own=first, cpu__allowed_cpus=allowed), wish("0-7")))
    assert all("AllowedCPUs=0-7" in lines(text) and "AllowedCPUs=0-3" not in text for text in second.values())


def test_a_group_that_is_right_is_left_alone():
    assert set(files(built(host(), wish(subjects=["user.slice"])))) == {DROP_INS["user.slice"]}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"slurm__present": True}, "Slurm"),
        ({"kubernetes__present": False}, "Docker"),
        ({"cpu__cpusets": {}}, "kubepods"),
        ({"kubernetes__present": False, "containers__engines": [], "cpu__cpusets": {}}, "login|user.slice"),
        ({"containers__cgroup_v2": False}, "control groups v2"),
    ],
)
def test_groups_in_which_jobs_run_are_refused(more, why):
    assert any(word in refused(host(**more), wish()) for word in why.split("|"))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"slurm__present": True}, "slurm.conf: NodeName=gpu01 CpuSpecList=0-3 "),
        ({"kubernetes__present": False}, '/etc/docker/daemon.json: "cgroup-parent": "containers.slice"'),
    ],
)
def test_a_refusal_gives_the_line_that_keeps_jobs_and_system_tasks_apart(more, line):
    assert line in refused(host(**more), wish())


@pytest.mark.parametrize("slurm", [True, False])
@pytest.mark.parametrize("kubernetes", [True, False])
@pytest.mark.parametrize("engines", [[], ["docker"], ["containerd"]])
def test_nothing_is_built_that_job_cpus_confined_reports(slurm, kubernetes, engines):
    where = {"slurm__present": slurm, "kubernetes__present": kubernetes, "containers__engines": engines}
    planned, _ = host_changes.build([wish()], host(**where))
    confined = {"system.slice": {"cpus": "0-3", "count": 4}} | PODS
    after = host_view.HostView(host(**where, cpu__cpusets=confined, cpu__count=128))
    try:
        reported = checks.load("job-cpus-confined").observe(after) < 128
    except FactAbsentError:
        reported = False
    assert not (planned and reported)


@pytest.mark.parametrize("value", ["", "all", "0,1,2,3", "3-0", "0-3 ", "0-99999999999", "0-3,2-5", 4.5, "0-3\nX=1"])
def test_what_is_no_list_of_the_kernel_is_refused(value):
    assert "is not a CPU list" in refused(host(), wish(value))


def test_cpus_that_are_not_online_are_refused():
    assert "126-200" not in refused(host(), wish("126-200")) and "128-200" in refused(host(), wish("126-200"))


def test_cpus_near_a_gpu_are_refused_where_others_are_not():
    assert "64-65 are near a GPU, 0-63 are near none" in refused(host(), wish("63-65"))
    every = {"numa__nodes": {"1": {"cpus": "0-127"}}}
    (group,), _ = host_changes.build([wish()], host(**every))
    assert "every CPU here is near a GPU" in group.notes[0]


def test_a_list_of_another_file_would_add_up_and_is_named():
    theirs = {"cpus": "8-9", "file": "/etc/systemd/system/system.slice.d/site.conf", "line": 2}
    assert "site.conf line 2" in refused(host(cpu__allowed_cpus={"system.slice": theirs}), wish())
    both = {"cpus": "0-9", "file": DROP_INS["system.slice"], "line": 5}
    own = files(built(host(), wish()))
    assert "systemctl cat system.slice" in refused(host(own=own, cpu__allowed_cpus={"system.slice": both}), wish("0-7"))

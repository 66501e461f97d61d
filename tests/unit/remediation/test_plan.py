"""What a plan holds, what a run may take of it, and how it is shown."""

import io
import json
import re
from dataclasses import replace

import jsonschema
import pytest

from nodetune.api import remedies
from nodetune.api.model import Absent, Each, Finding, Fix, HostFacts, HostResult, Unread, Value
from nodetune.audit import gpu_users
from nodetune.foundation import paths
from nodetune.remediation import plan, plan_document
from nodetune.report.text import plan as text_plan

SYSCTL = "persisted.sysctl.vm.swappiness"


def finding(check, remedy, value, reason=""):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, (), "", remedy.params)
    return Finding(check, "fail", "low", "a fault", "60", "10", reason, fix=fix)


def facts(host, **more):
    return HostFacts(
        host, {"services.docker": Value({"active": "active", "enabled": "enabled"}), "own.files": Value({}), **more}
    )


SWAPPINESS = finding(
    "swappiness-high", remedies.sysctl("vm.swappiness"), 10, "set by /etc/sysctl.d/10-a.conf line 3 (60)"
)
SHM = finding("shm-small", remedies.docker_daemon("default-shm-size"), "16g")
FAN = Finding("fan-failed", "fail", "high", "a fan", manual="replace it")


def result(host, *findings, **more):
    return HostResult(host, "ok", facts=facts(host, **more), findings=findings or (SHM, SWAPPINESS, FAN))


def plans(*hosts):
    return [plan.plan(result(host)) for host in hosts]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal of one width, whoever runs the tests."""
    monkeypatch.setenv("COLUMNS", "110")


def shown(found, *, files=False):
    stream = io.StringIO()
    text_plan.print_plan(stream, found, files=files)
    return stream.getvalue()


def test_steps_are_sorted_by_disruption_and_hosts_folded():
    steps = [(found.check, host) for host, found, _ in plan.steps(plans("b", "a"))]
    assert steps == [("swappiness-high", "a"), ("swappiness-high", "b"), ("shm-small", "a"), ("shm-small", "b")]


def test_a_structure_is_shown_as_it_will_be_in_its_file():
    ulimits = {"memlock": {"Name": "memlock", "Hard": -1}}
    assert json.loads(plan.after(finding("d", remedies.docker_daemon("default-ulimits"), ulimits))) == ulimits


# --- what a run may take


def test_too_disruptive_fixes_are_left_out_with_their_option():
    found = plan.plan(result("a"), "new sessions")
    assert [each.check for each in found.findings] == ["swappiness-high"]
    assert [each.name for each in found.changes] == ["sysctl"]
    ((left, why),) = found.left_out
    assert left.check == "shm-small"
    assert "--max-disruption service-restart" in why


def test_what_disturbs_work_waits_where_there_is_work():
    found = plan.plan(result("a"), "reboot", "python (7) computes")
    assert [each.check for each in found.findings] == ["swappiness-high"]
    ((left, why),) = found.left_out
    assert left.check == "shm-small"
    assert "python (7) computes" in why


def test_without_facts_nothing_is_planned():
    assert plan.plan(HostResult("a", "ok", findings=(SWAPPINESS,))).findings == ()


def process(pid, name="python"):
    return {"pid": pid, "name": name, "used_memory": 1}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Each({"GPU0": Value([process(7)]), "GPU1": Value([process(7), process(8, None)])}), "process (8), python (7)"),
        (Each({"GPU0": Value([])}), ""),
        (Unread("NVML does not answer"), "unknown"),
        (Value([1, 2]), "unknown"),
        (Each({"GPU0": Value(5)}), "unknown"),
    ],
)
def test_who_uses_a_gpu_is_in_the_way(seen, expected):
    none = Each({})
    found = HostFacts("a", {"gpu.compute_running_processes": seen, "gpu.mps_compute_running_processes": none})
    assert expected in gpu_users.busy(found)
    assert bool(expected) == bool(gpu_users.busy(found))


def test_without_nvml_nobody_uses_a_gpu():
    assert gpu_users.busy(HostFacts("a", {"gpu.nvml": Absent("no NVML library")})) == ""
    assert "unknown" in gpu_users.busy(HostFacts("a", {"gpu.nvml": Unread("NVML: driver/library version mismatch")}))


# --- for people


def test_a_plan_says_who_sets_the_value_now():
    assert "set by /etc/sysctl.d/10-a.conf line 3 (60)" in shown(plans("a"))


def test_hosts_that_get_the_same_are_folded():
    text = shown(plans("gpu01", "gpu02"))
    assert re.search(r"all 2 hosts +host +a fault: 60 → 10 +swappiness-high", text)
    assert text.count("restart docker.service") == 1
    assert "4 steps on 2 hosts; 2 findings need manual work" in text


def test_the_totals_come_first_and_each_section_acts():
    first, second, _, *lines = shown(plans("a")).splitlines()
    assert first.startswith("a  profile")
    assert second == "2 steps on 1 host; 1 finding needs manual work. Nothing was changed."
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == [
        "APPLY CAN FIX, nothing is interrupted (1 step)",
        "APPLY CAN FIX, on a drained node (1 step)",
        "MANUAL WORK (1 finding)",
    ]
    assert [line.split(maxsplit=2)[2] for line in lines if line.startswith("  to do")] == [
        "nodetune apply --dry-run",
        "nodetune apply --max-disruption service-restart --dry-run",
        "nodetune explain --section by-hand",
    ]


def test_a_fix_that_another_one_reports_is_a_step_too():
    child = replace(
        SWAPPINESS, check="vfs-pressure", part_of="swappiness-high", reported_by={"host": "swappiness-high"}
    )
    text = shown([plan.plan(result("a", SWAPPINESS, child))])
    assert "nothing is interrupted (2 steps)" in text
    assert re.search(r"swappiness-high$", text, re.MULTILINE)
    assert re.search(r"vfs-pressure$", text, re.MULTILINE)


def test_commands_and_notes_are_in_the_section_of_their_disruption():
    _, disruptive = shown(plans("a")).split("APPLY CAN FIX, on a drained node")
    assert "  runs      restart docker.service" in disruptive
    assert "live-restore" in disruptive


def test_the_second_row_of_a_note_starts_below_its_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = shown(plans("a")).splitlines()
    (first,) = (at for at, row in enumerate(rows) if row.startswith("  note ") and "Docker restarts" in row)
    assert rows[first + 1].startswith(" " * 12)
    assert rows[first + 1].strip()


def without_docker():
    """A plan in which one finding cannot be fixed."""
    return [plan.plan(result("a", SHM, SWAPPINESS, FAN, **{"services.docker": Absent("no docker.service")}))]


def test_an_unsupported_step_has_a_reason_and_does_not_count():
    text = shown(without_docker())
    assert "unsupported  shm-small" in text
    assert "no docker.service" in text
    assert "1 step on 1 host; 2 findings need manual work" in text


def test_every_file_is_shown_whole_where_that_is_wanted():
    text = shown(plans("a"), files=True)
    assert "vm.swappiness = 10" in text
    assert '"default-shm-size": "16g"' in text
    assert "vm.swappiness = 10" not in shown(plans("a"))


def test_a_host_cannot_move_the_cursor_through_a_plan():
    evil = finding("x", remedies.sysctl("kernel.core_pattern"), "\x1b[2J")
    text = shown([plan.plan(result("a", evil))], files=True)
    assert r"\x1b[2J" in text
    assert "\x1b" not in text


# --- for programs


def test_a_plan_document_is_valid_and_has_equal_changes_once():
    made = plan_document.plan(plans("gpu01", "gpu02"))
    jsonschema.validate(made, json.loads(paths.bundled("data/schemas").joinpath("plan.json").read_text()))
    (work,) = made["work"]
    assert work["hosts"] == ["gpu01", "gpu02"]
    assert [group["group"] for group in work["groups"]] == ["sysctl", "docker_daemon"]
    assert made["by_hand"] == [{"check": "fan-failed", "hosts": ["gpu01", "gpu02"], "manual": "replace it"}]


def test_a_step_that_cannot_be_done_says_so_as_data():
    steps = {step["check"]: step["unfixable"] for step in plan_document.plan(without_docker())["steps"]}
    assert steps["swappiness-high"] == ""
    assert steps["shm-small"]


def test_a_rhel_host_keeps_kernel_arguments_by_grubby():
    like = Value({"id": "rocky", "like": ["rhel"], "version": "9", "name": ""})
    iommu = finding("iommu", remedies.kernel_arg("iommu"), "pt")
    assert "  writes    kernel arguments, by grubby" in shown([plan.plan(result("a", iommu, **{"host.os": like}))])


# --- which file keeps it

ACTIVE = Value({"active": "active", "enabled": "enabled", "exec": "/usr/bin/nvidia-persistenced --verbose"})
GPUS = {"gpu.uuid": Each({"GPU0": Value("GPU-1")})}


def of_gpu(setting, value):
    return replace(finding(f"gpu-{setting}", remedies.gpu(setting), value), subjects={"GPU0": "off"})


def kept(*given, **more):
    found = plan.plan(result("a", *given, **more))
    assert found.left_out == ()
    return {each.check: plan.kept_in(found, each) for each in found.findings}


def test_the_daemon_keeps_persistence_and_no_own_unit():
    both = of_gpu("persistence_mode", "enabled"), of_gpu("compute_mode", "default")
    found = kept(*both, **GPUS, **{"services.nvidia-persistenced": ACTIVE})
    assert found["gpu-persistence_mode"] == ["nvidia-persistenced.service"]
    assert "/etc/systemd/system/nodetune-gpu.service" in found["gpu-compute_mode"]
    assert "/etc/nodetune/gpu.conf" in found["gpu-compute_mode"]


def test_the_gpu_itself_keeps_ecc_and_no_file():
    found = plan.plan(result("a", of_gpu("ecc_mode", "enabled"), **GPUS))
    assert plan.kept_in(found, found.findings[0]) == []
    assert "writes" not in shown([found])


def test_swap_of_a_unit_is_kept_off_by_its_mask():
    swaps = {"memory.swaps": Value({"/dev/zram0": {"type": "partition", "size_kb": 1, "used_kb": 0}})}
    found = kept(finding("swap", remedies.swap_off(), 0), **swaps)
    assert {"/etc/fstab", "dev-zram0.swap", "systemd-zram-setup@zram0.service"} <= set(found["swap"])


LIMIT_FILE = "/etc/security/limits.d/zz-nodetune.conf"
CONTAINERD_FILE = "/etc/systemd/system/containerd.service.d/zz-nodetune.conf"


def of_limit(item, value, *subjects):
    made = finding(item, remedies.limit(item), value)
    return replace(made, fix=replace(made.fix, subjects=subjects))


def limits_of(*subjects):
    return Each(dict.fromkeys(subjects, Value({"soft": 1024, "hard": 1024, "source": "process 7"})))


LIMITS = {
    "limits.nofile": limits_of("containerd"),
    "limits.nproc": limits_of("login sessions"),
    "services.containerd": ACTIVE,
}


def test_a_limit_names_the_files_of_its_own_subjects():
    given = of_limit("nofile", 1048576, "containerd"), of_limit("nproc", "unlimited", "login sessions")
    assert kept(*given, **LIMITS) == {"nofile": [CONTAINERD_FILE], "nproc": [LIMIT_FILE]}
    both = of_limit("nofile", 1048576, "containerd", "login sessions")
    assert kept(both, **LIMITS) == {"nofile": [LIMIT_FILE, CONTAINERD_FILE]}


def test_a_plan_document_names_the_files_that_are_written():
    given = of_limit("nofile", 1048576, "containerd"), of_limit("nproc", "unlimited", "login sessions")
    made = plan_document.plan([plan.plan(result("a", *given, **LIMITS))])
    jsonschema.validate(made, json.loads(paths.bundled("data/schemas").joinpath("plan.json").read_text()))
    assert {step["check"]: (step["file"], step["files"]) for step in made["steps"]} == {
        "nofile": (CONTAINERD_FILE, [CONTAINERD_FILE]),
        "nproc": (LIMIT_FILE, [LIMIT_FILE]),
    }


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ({"id": "rhel", "name": "Red Hat Enterprise Linux CoreOS 9.6"}, "Red Hat Enterprise Linux CoreOS 9.6 has a read-only system: set it by a MachineConfig, KubeletConfig or the Node Tuning Operator"),
        ({"id": "fedora", "name": "Fedora CoreOS 42"}, "Fedora CoreOS 42 has a read-only system: set it by its Ignition configuration"),
        ({"id": "bottlerocket", "name": "Bottlerocket OS 1.40"}, "Bottlerocket OS 1.40 has a read-only system: set it by its settings (apiclient set, or user data)"),
        ({"id": "talos", "name": "Talos (v1.11)"}, "Talos (v1.11) has a read-only system: set it by its machine configuration (talosctl patch machineconfig)"),
    ],
)  # fmt: skip
def test_a_system_that_is_an_image_is_not_changed(system, told):
    made = plan.plan(result("a", **{"host.os": Value(system)}))
    assert (made.findings, made.changes) == ((), ())
    assert made.left_out == ((SWAPPINESS, told), (SHM, told))


def test_a_system_with_files_of_its_own_is_changed():
    assert plan.plan(result("a", **{"host.os": Value({"id": "rhel", "name": "Red Hat Enterprise Linux 9"})})).findings

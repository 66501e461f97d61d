"""What a plan holds, what a run may take of it, and how it is shown."""

import io
import json

import jsonschema
import pytest

from nodetune import paths, plan, remedies
from nodetune.model import Absent, Each, Finding, Fix, HostFacts, HostResult, Step, Unread, Value
from nodetune.plan import Built
from nodetune.report import data, plan_text

SYSCTL = "persisted.sysctl.vm.swappiness"


def finding(check, remedy, value, reason=""):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, (), "", remedy.params)
    return Finding(check, "fail", "low", "a fault", "60", "10", reason, fix=fix)


def results(*hosts):
    found = (
        finding("swappiness-high", remedies.sysctl("vm.swappiness"), 10, "set by /etc/sysctl.d/10-a.conf line 3 (60)"),
        finding("shm-small", remedies.docker_daemon("default-shm-size"), "16g"),
        Finding("fan-failed", "fail", "high", "a fan", manual="replace it"),
    )
    return [HostResult(host, "ok", findings=found) for host in hosts]


def facts(host, **more):
    return HostFacts(
        host, {"services.docker": Value({"active": "active", "enabled": "enabled"}), "own.files": Value({}), **more}
    )


def built(found, **more):
    steps = plan.plan(found)
    return {each.host: plan.build(steps, facts(each.host, **more)) for each in found}


def shown(found, work=None, *, files=False):
    stream = io.StringIO()
    plan_text.print_plan(stream, plan.plan(found), plan.by_hand(found), found, work, files=files)
    return stream.getvalue()


def test_steps_come_least_disruptive_first():
    assert [step.check for step in plan.plan(results("b", "a"))] == ["swappiness-high"] * 2 + ["shm-small"] * 2


def test_a_structure_is_shown_as_it_will_stand_in_its_file():
    ulimits = {"memlock": {"Name": "memlock", "Hard": -1}}
    (step,) = plan.plan(
        [HostResult("a", "ok", findings=(finding("d", remedies.docker_daemon("default-ulimits"), ulimits),))]
    )
    assert json.loads(step.after) == ulimits


# --- what a run may take


def test_what_disrupts_more_than_allowed_is_left_out_with_the_option_that_would_allow_it():
    steps = plan.plan(results("a"))
    todo, skipped = plan.select(steps, "new sessions")
    assert [step.check for step in todo] == ["swappiness-high"]
    ((left, why),) = skipped
    assert left.check == "shm-small"
    assert "--max-disruption 'service restart'" in why


def test_what_disturbs_work_waits_where_there_is_work():
    steps = plan.plan(results("a", "b", "c"))
    todo, skipped = plan.select(steps, "reboot", {"a": "python (7) computes", "b": ""})
    assert [(step.host, step.check) for step, _ in skipped] == [("a", "shm-small")]
    assert "python (7) computes" in skipped[0][1]
    assert len(todo) == 5


def process(pid, name="python"):
    return {"pid": pid, "name": name, "used_memory": 1}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (Each({"GPU0": Value([process(7)]), "GPU1": Value([process(7), process(8, None)])}), "process (8), python (7)"),
        (Each({"GPU0": Value([])}), ""),
        (Unread("NVML does not answer"), "not known"),
        (Value([1, 2]), "not known"),
        (Each({"GPU0": Value(5)}), "not known"),
    ],
)
def test_who_uses_a_gpu_is_in_the_way(seen, expected):
    none = Each({})
    found = HostFacts("a", {"gpu.compute_running_processes": seen, "gpu.mps_compute_running_processes": none})
    assert expected in plan.busy(found)
    assert bool(expected) == bool(plan.busy(found))


def test_without_nvml_nobody_uses_a_gpu():
    assert plan.busy(HostFacts("a", {"gpu.nvml": Absent("no NVML library")})) == ""
    assert "not known" in plan.busy(HostFacts("a", {"gpu.nvml": Unread("NVML: driver/library version mismatch")}))


# --- for people


def test_a_plan_says_who_sets_the_value_now():
    assert "set by /etc/sysctl.d/10-a.conf line 3 (60)" in shown(results("a"))


def test_hosts_that_get_the_same_are_folded():
    found = results("gpu01", "gpu02")
    text = shown(found, built(found))
    assert "gpu[01-02]  swappiness-high" in text
    assert text.count("restart docker.service") == 1
    assert "4 steps on 2 hosts; 1 finding is for a person" in text


def test_what_else_a_plan_runs_and_what_is_to_know_stands_below_its_disruption():
    found = results("a")
    _, disruptive = shown(found, built(found)).split("disruption: service restart")
    assert "runs    restart docker.service" in disruptive
    assert "live-restore" in disruptive


def test_a_step_that_no_change_can_do_is_told_with_the_reason_and_not_counted():
    found = results("a")
    steps = plan.plan(found)
    work = {"a": Built((), tuple((step, "no docker.service") for step in steps if step.check == "shm-small"))}
    text = shown(found, work)
    assert "not by us  shm-small" in text
    assert "no docker.service" in text
    assert "1 step on 1 host; 2 findings are for a person" in text


def test_every_file_is_shown_whole_where_that_is_wanted():
    found = results("a")
    text = shown(found, built(found), files=True)
    assert "vm.swappiness = 10" in text
    assert '"default-shm-size": "16g"' in text
    assert "vm.swappiness = 10" not in shown(found, built(found))


def test_a_host_cannot_move_the_cursor_through_a_plan():
    evil = (finding("x", remedies.sysctl("kernel.core_pattern"), "\x1b[2J"),)
    found = [HostResult("a", "ok", findings=evil)]
    assert "\x1b" not in shown(found, built(found), files=True)


# --- for programs


def test_a_plan_as_data_keeps_to_its_schema_and_holds_equal_changes_once():
    found = results("gpu01", "gpu02")
    made = data.plan(plan.plan(found), plan.by_hand(found), found, built(found))
    jsonschema.validate(made, json.loads(paths.bundled("schemas").joinpath("plan.json").read_text()))
    (work,) = made["work"]
    assert work["hosts"] == ["gpu01", "gpu02"]
    assert [group["group"] for group in work["groups"]] == ["sysctl", "docker_daemon"]


def test_a_step_that_cannot_be_done_says_so_as_data():
    found = results("a")
    steps = plan.plan(found)
    work = {"a": Built((), ((steps[0], "because"),))}
    made = data.plan(steps, {}, found, work)
    assert [step["unfixable"] for step in made["steps"]] == ["because", ""]


def test_a_rhel_host_keeps_kernel_arguments_by_grubby():
    like = Value({"id": "rocky", "like": ["rhel"], "version": "9", "name": ""})
    found = [HostResult("a", "ok", findings=(finding("iommu", remedies.kernel_arg("iommu"), "pt"),))]
    assert "kept by grubby" in shown(found, built(found, **{"host.os": like}))


def test_a_step_of_another_host_is_passed_over():
    steps = plan.plan(results("a", "b"))
    assert {group.checks for group in plan.build(steps, facts("a")).groups} == {("swappiness-high",), ("shm-small",)}
    assert isinstance(steps[0], Step)

"""A plan shows what changes, not what is on the host already."""

import hashlib
import io
from dataclasses import replace

import pytest

from nodetune.api import remedies
from nodetune.api.model import Absent, Finding, Fix, HostFacts, HostResult, Value
from nodetune.remediation import plan, plan_document
from nodetune.remediation.builders import cpufreq
from nodetune.report.text import plan as text_plan

NOW = Value({"active": "inactive", "enabled": "enabled"})
FACTS = {
    "host.os": Value({"id": "ubuntu"}),
    "own.files": Value({}),
    **{f"services.{name}": Absent("not installed") for name in ("tuned", "tuned_profile", *cpufreq.OWNERS)},
}


def finding(remedy, value, observed, reason="", subjects=()):
    fix = Fix(remedy.kind, remedy.target, value, remedy.disruption, remedy.file, subjects, "", remedy.params)
    return Finding("a-check", "fail", "low", "a fault", observed, str(value), reason, fix=fix)


GOVERNOR = finding(remedies.cpufreq("governor"), "performance", "powersave", subjects=("cpu0",))
AUTOGROUP = finding(remedies.sysctl("kernel.sched_autogroup_enabled"), 0, "0 now", "the next boot starts with 1")


def planned(found, facts):
    return plan.plan(HostResult("a", "ok", facts=HostFacts("a", {**FACTS, **facts}), findings=(found,)))


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal of one width, whoever runs the tests."""
    monkeypatch.setenv("COLUMNS", "110")


def shown(found, facts, *, files=False):
    stream = io.StringIO()
    text_plan.print_plan(stream, [planned(found, facts)], files=files)
    return stream.getvalue()


def applied(found):
    """The facts of a host on which an apply left all that the plan writes."""
    (change,) = planned(found, {}).changes
    written = {each["path"]: each["content"] for each in change.changes if each["change"] == "file"}
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in written.items() if "/lib/" in path}
    files = {path: text for path, text in written.items() if path not in digests}
    return {"own.files": Value(files), "own.programs": Value(digests), "services.nodetune-cpu": NOW}


def test_files_and_units_that_are_there_already_are_not_listed():
    assert "/usr/local/lib/nodetune/cpu" in shown(GOVERNOR, {})
    text = shown(GOVERNOR, applied(GOVERNOR))
    assert "powersave → performance" in text
    assert "writes" not in text
    assert "nodetune-cpu.service: enabled" not in text


def test_an_older_program_is_written_again_alone():
    facts = applied(GOVERNOR)
    path, *_ = facts["own.programs"].value
    old = {**facts, "own.programs": Value({**facts["own.programs"].value, path: "0" * 64})}
    text = shown(GOVERNOR, old)
    assert text.count("writes") == 1
    assert f"writes    {path}" in text


def test_a_disabled_unit_is_enabled_again():
    disabled = {**applied(GOVERNOR), "services.nodetune-cpu": Value({"active": "inactive", "enabled": "disabled"})}
    assert "nodetune-cpu.service: enabled" in shown(GOVERNOR, disabled)


def test_an_apply_still_gets_every_change():
    there = planned(GOVERNOR, applied(GOVERNOR)).changes
    assert [each.data() for each in there] == [each.data() for each in planned(GOVERNOR, {}).changes]


def test_the_file_of_a_value_that_drifted_is_there_already():
    swappiness = finding(remedies.sysctl("vm.swappiness"), 10, "60")
    assert "60 → 10" in shown(swappiness, {})
    assert "  writes    /etc/sysctl.d/zz-nodetune.conf" in shown(swappiness, {})
    assert "60 → 10" in shown(swappiness, applied(swappiness))
    assert "  in place  /etc/sysctl.d/zz-nodetune.conf" in shown(swappiness, applied(swappiness))
    assert "writes" not in shown(swappiness, applied(swappiness))
    assert "vm.swappiness = 10" not in shown(swappiness, applied(swappiness), files=True)


def test_a_right_value_that_a_boot_loses_is_no_change_of_it():
    text = shown(AUTOGROUP, {})
    assert "0 now → 0 at every boot" in text
    other = replace(AUTOGROUP, observed="1")
    assert "1 → 0 " in shown(other, {})
    assert "at every boot" not in shown(other, {})


def test_a_plan_for_programs_lists_no_change_that_stands():
    made = plan_document.plan([planned(GOVERNOR, applied(GOVERNOR))])
    assert [step["check"] for step in made["steps"]] == ["a-check"]
    changes = [change for work in made["work"] for group in work["groups"] for change in group["changes"]]
    assert not [change for change in changes if change["change"] in ("file", "unit")]
    fresh = plan_document.plan([planned(GOVERNOR, {})])["work"][0]["groups"][0]["changes"]
    assert {"file", "unit"} <= {change["change"] for change in fresh}

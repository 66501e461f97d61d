"""Every check with a fix: a host that fails it in tests/data/cases gets changes that name the check."""

import pytest

from nodetune import checks
from nodetune.api.model import Absent, HostFacts
from nodetune.facts import document
from nodetune.remediation import host_changes
from tests.data.synthetic import build
from tests.unit.checks.test_cases import EVERY, judge

FIXABLE = [check for check in checks.load_all() if check.remedy.kind != "manual"]
FAILING = {}
for each in EVERY:
    name, status, given, case = each.values
    if status == "fail":
        FAILING.setdefault(name.replace("_", "-"), []).append({**given, **case})

USUAL, OTHERS = "hgx-h200-untuned", {"system-tasks-cpus-unwanted": "pcie-8xl40s"}
"""The machine that has what a plan needs beyond a case; another one where that one's jobs are in the way."""


def plans(check):
    host = document.load(build.HERE / f"{OTHERS.get(check.id, USUAL)}.json").facts
    for found in FAILING[check.id]:
        facts = {name: fact for name, fact in found.items() if name != "finding"}
        finding = judge(check, dict(facts))
        facts.pop("site", None)
        collected = document.from_data({"host": "case", "facts": facts}).facts
        needed = {name: host.get(name, Absent("not there")) for name in host_changes.needs([check.remedy.kind])}
        if finding.fix:
            yield host_changes.build([finding], HostFacts("case", {**needed, **collected}))


@pytest.mark.parametrize("check", FIXABLE, ids=lambda check: check.id)
def test_a_failing_case_gets_changes_that_name_its_check(check):
    made = list(plans(check))
    assert any({check.id} == set(group.checks) for groups, _ in made for group in groups), [left for _, left in made]

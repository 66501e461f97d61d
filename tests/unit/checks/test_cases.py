"""Every check judges the cases of its file in tests/data/cases as the file says."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.api import predicates
from nodetune.audit import evaluate
from nodetune.facts import document

CASES = Path(__file__).parents[2] / "data" / "cases"
STATUSES = ("pass", "fail", "skip", "unknown")


def _cases():
    for path in sorted(CASES.glob("*.yml")):
        content = yaml.load(path.read_text(), yaml.CSafeLoader)
        for status in STATUSES:
            group = content.get(status, [])
            for number, case in enumerate(group if isinstance(group, list) else [group]):
                yield pytest.param(
                    path.stem, status, content.get("given", {}), case, id=f"{path.stem}-{status}-{number}"
                )


EVERY = list(_cases())


def judge(check, facts):
    site = facts.pop("site", None)  # what a site file says of the check
    if site:
        accept = predicates.from_data(site["accept"]) if "accept" in site else check.accept
        check = replace(check, accept=accept, set=site.get("set"))
    persisted = {check.remedy.persisted: {"absent": "no file sets it"}} if check.remedy.persisted else {}
    return evaluate.judge(check, document.from_data({"host": "case", "facts": {**persisted, **facts}}))


@pytest.mark.parametrize(("name", "status", "given", "case"), EVERY)
def test_a_case_gets_the_verdict_that_its_file_states(name, status, given, case):
    facts = {**given, **case}
    wanted = facts.pop("finding", {})
    finding = judge(checks.load(name.replace("_", "-")), facts)
    assert finding.status == status, finding
    for field, expected in wanted.items():
        if field.endswith("_has"):
            assert expected in getattr(finding, field.removesuffix("_has"))
        elif field in ("subjects", "odd"):
            assert list(getattr(finding, field)) == expected
        else:
            assert getattr(finding, field) == expected

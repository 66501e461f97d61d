"""Recorded machines of other people: nothing false at medium or above, and nothing missed."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nodetune.api.model import HostResult
from nodetune.audit import summary
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.cli import main
from nodetune.facts import document

CORPUS = Path(__file__).parents[2] / "data" / "corpus"
EXPECTED = yaml.safe_load((CORPUS / "expected.yml").read_text())
COUNTED = summary.at_least("medium")


@pytest.fixture(scope="module")
def auditor():
    return Auditor(Selection())


def named(check, patterns):
    return any(fnmatchcase(check, pattern) for pattern in patterns)


@pytest.mark.parametrize("machine", EXPECTED)
def test_a_recorded_machine_gets_its_own_findings(machine, auditor):
    says, facts = EXPECTED[machine], document.load(CORPUS / f"{machine}.json")
    failing = {each.check: each for each in auditor.audit(HostResult(machine, "ok", facts=facts)).failing()}
    right, never = [*says["expected"], *says.get("allowed", {})], says.get("forbidden", [])
    problems = [
        f"false: {check} ({found.severity}): {found.observed}"
        for check, found in failing.items()
        if named(check, never) or (found.severity in COUNTED and not named(check, right))
    ]
    problems += [f"missed: {each}" for each in says["expected"] if not any(named(check, [each]) for check in failing)]
    if problems:
        pytest.fail(f"{machine}: {'; '.join(problems)}", pytrace=False)


def test_every_recorded_machine_is_judged_and_names_its_source():
    files = {path.stem: document.load(path) for path in CORPUS.glob("*.json")}
    assert files.keys() == EXPECTED.keys()
    assert not [name for name, facts in files.items() if not facts.about.get("source")]


def test_a_partial_recording_says_once_what_it_lacks():
    shown = CliRunner().invoke(main.group, ["audit", "--facts", str(CORPUS / "qemu-a10.json")])
    assert shown.output.count("not collected") == 1

"""The commands of sections do what the sections say, and compare hosts as the audit did that proposes them."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.commandline import nodetune

MACHINES = Path(__file__).parents[2] / "data/synthetic"


@pytest.fixture
def two(tmp_path):
    (tmp_path / "two").mkdir()
    for name in ("hgx-h200-tuned", "hgx-h200-untuned"):
        shutil.copy(MACHINES / f"{name}.json", tmp_path / "two")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "carried"),
    [
        ("--cohort all --reference hgx-h200-tuned", "--cohort all --reference hgx-h200-tuned"),
        ("--cohort gpu", ""),
        ("--no-compare", "--no-compare"),
    ],
)
def test_the_way_of_comparing_is_carried_where_it_holds(two, words, carried):
    done = nodetune("audit", "--facts", "two", *words.split(), cwd=two)
    proposed = re.findall(r"nodetune (audit|explain|plan) --facts two ?(.*)", done.stdout)
    assert {verb for verb, _ in proposed} == {"audit", "explain", "plan"}
    told = {verb: re.sub(r"--(section|max-disruption) \S+|--full", "", more).strip() for verb, more in proposed}
    assert told == {"audit": carried, "explain": carried, "plan": ""}


def test_an_explained_section_has_the_findings_of_that_comparison(two):
    words = shlex.split("--facts two --cohort all --reference hgx-h200-tuned --section by-hand")
    compared = nodetune("explain", *words, cwd=two).stdout
    alone = nodetune("explain", "--facts", "two", "--section", "by-hand", cwd=two).stdout
    assert "fleet-" in compared
    assert "fleet-" not in alone


HEAD = re.compile(r"^([A-Z][A-Z ]+[A-Z])\b[^\n]*\((\d+) findings?\)$", re.MULTILINE)
TO_DO = re.compile(r"^  to do +nodetune (.+)$", re.MULTILINE)
EXPLAINED = re.compile(r"^(?:critical|high|medium|low|info) +([a-z0-9-]+)  ", re.MULTILINE)


def explained(facts, section):
    done = nodetune("explain", "--facts", facts, "--section", section)
    return EXPLAINED.findall(done.stdout)


@pytest.mark.parametrize("machine", ["hgx-h200-untuned", "grace-gb200"])
def test_the_command_of_each_section_does_what_the_section_says(machine):
    facts = str(MACHINES / f"{machine}.json")
    audited = nodetune("audit", "--facts", facts, env={"COLUMNS": "160"}).stdout
    sections = [(title, int(number)) for title, number in HEAD.findall(audited)]
    commands = [shlex.split(line) for line in TO_DO.findall(audited)]
    assert len(sections) == len(commands) >= 3
    fixes = iter(["apply-now", "apply-drained"])
    for (title, number), command in zip(sections, commands, strict=True):
        if title == "APPLY CAN FIX":
            planned = json.loads(nodetune(*command, "--format", "json").stdout)["steps"]
            names = explained(facts, next(fixes))
            assert set(names) <= {step["check"] for step in planned if not step["unfixable"]}
        else:
            assert command[:3] == ["explain", "--facts", facts]
            names = EXPLAINED.findall(nodetune(*command).stdout)
        assert len(names) == number, (title, names)

"""The commands of sections compare hosts as the audit did that proposes them."""

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

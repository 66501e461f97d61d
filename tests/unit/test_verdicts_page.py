"""Every critical and high check brings its proof: the page about them is not made without."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nodetune import checks

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import verdicts

GATING, UNGATED = checks.load("gpu-lost"), checks.load("nvlink-down")


def without(check, *headings):
    """The check without these lines of its docstring."""
    lines = [line for line in check.doc.split("\n") if not line.startswith(headings)]
    return replace(check, doc="\n".join(lines))


@pytest.mark.parametrize("severity", ["critical", "high"])
def test_every_check_of_these_severities_brings_its_proof(severity):
    asked = [check for check in checks.load_all() if check.severity == severity]
    assert len(asked) > 20
    assert [f"{check.id}: {lack}" for check in asked for lack in verdicts.lacks(check)] == []


def test_a_check_without_a_healthy_exception_is_named():
    (lack,) = verdicts.lacks(without(GATING, "Healthy exception:"))
    assert "what looks like this fault on a healthy machine?" in lack


def test_a_critical_check_gates_or_says_why_not():
    (lack,) = verdicts.lacks(without(UNGATED, "Does not gate:"))
    assert lack == 'critical, and no "Does not gate:" says why it does not gate'
    (lack,) = verdicts.lacks(replace(GATING, doc=GATING.doc.replace("Confirm", "Does not gate: x\nConfirm", 1)))
    assert lack == 'it gates and has "Does not gate:"'


@pytest.mark.parametrize("named", ["", "pass-9", "fail-0", "first"])
def test_an_exception_that_no_case_proves_is_named(named, monkeypatch):
    content = verdicts.cases(GATING)
    monkeypatch.setattr(verdicts, "cases", lambda _: {**content, "exception": named})
    assert list(verdicts.lacks(GATING)) == [
        "tests/data/cases/gpu_lost.yml: exception is to name the case of the healthy exception, such as pass-0"
    ]


def test_a_check_without_cases_is_named():
    told = list(verdicts.lacks(replace(GATING, id="gpu-eaten")))
    assert [lack for lack in told if "no case that fails" in lack]


def test_without_a_proof_no_page_is_made(monkeypatch):
    verdicts.gating()  # of all checks, and kept
    monkeypatch.setattr(checks, "load_all", lambda: [without(GATING, "Healthy exception:")])
    with pytest.raises(verdicts.UnprovenError, match="gpu-lost: its docstring has no"):
        verdicts.page()

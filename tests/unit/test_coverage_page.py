"""What the page about coverage refuses to leave empty."""

import sys
from pathlib import Path

import pytest
import yaml

from nodetune import checks

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import covered

ROW = {"row": "Swap", "checks": ["memory/swap*"], "manual": "because", "unmeasured": "because"}
SWAP = [checks.load("swap-in-use"), checks.load("swappiness-high")]


def test_every_check_is_in_one_row():
    rows = yaml.safe_load(covered.ROWS.read_text())
    members = covered.by_row(rows, checks.load_all())
    listed = [check.id for row in rows for check in members[row["row"]]]
    assert sorted(listed) == sorted(checks.catalogue())
    assert [gap for row in rows for gap in covered.gaps(row, members[row["row"]])] == []


def test_a_check_that_fits_no_row_is_named():
    with pytest.raises(covered.GapError, match="gpu-lost: no row of coverage.yml has a pattern for gpu/gpu-lost"):
        covered.by_row([ROW], [checks.load("gpu-lost")])


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        ({"manual": ""}, "has checks without a fix, and no `manual` says why"),
        ({"unmeasured": ""}, "needs `measurement`, or `unmeasured` with the reason"),
        ({"measurement": ["disk"]}, "needs `measurement`, or `unmeasured` with the reason"),
        ({"unmeasured": "", "measurement": ["discs"]}, "there is no measurement discs"),
    ],
)
def test_a_row_without_a_reason_is_named(change, gap):
    assert list(covered.gaps({**ROW, **change}, SWAP)) == [f"coverage.yml: Swap: {gap}"]


def test_a_row_that_no_check_fits_is_named():
    assert list(covered.gaps(ROW, [])) == ["coverage.yml: Swap: no check fits its patterns"]


def test_a_fix_that_no_test_names_is_named(monkeypatch):
    monkeypatch.setattr(covered, "proofs", lambda _: [])
    monkeypatch.setattr(covered, "_kinds", frozenset)
    monkeypatch.setattr(covered, "_texts", dict)
    (gap,) = covered.gaps(ROW, SWAP)
    assert gap.startswith("coverage.yml: Swap: no test names the fix of swappiness-high")


def test_what_machines_are_said_to_fix_are_checks_with_a_fix():
    shipped = covered.fixed() & set(checks.catalogue())
    assert [name for name in shipped if checks.load(name).remedy.kind == "manual"] == []
    assert len(shipped) >= 40

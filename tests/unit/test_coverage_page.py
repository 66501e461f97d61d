"""What the page about coverage refuses to leave empty."""

import sys
from pathlib import Path

import pytest

from nodetune import checks

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import covered

ROW = {"row": "Swap", "checks": ["memory/swap*"], "manual": "because", "unmeasured": "because"}
HERE = "tests/unit/test_coverage_page.py::test_every_check_is_in_one_row"
SWAP = [checks.load("swap-in-use"), checks.load("swappiness-high")]


def test_every_check_is_in_one_row():
    rows = covered.stated()["rows"]
    members = covered.by_row(rows, checks.load_all())
    listed = [check.id for row in rows for check in members[row["row"]]]
    assert sorted(listed) == sorted(checks.catalogue())
    assert [gap for row in rows for gap in covered.gaps(row, members[row["row"]])] == []


def test_a_reason_for_a_row_that_is_not_there_is_named(monkeypatch):
    covered.stated.cache_clear()
    monkeypatch.setattr(covered.shown_by, "rows", lambda: [ROW])
    with pytest.raises(covered.GapError, match="GPU power.*: no such row in measured.yml"):
        covered.stated()
    covered.stated.cache_clear()


def test_a_check_that_fits_no_row_is_named():
    with pytest.raises(covered.GapError, match="gpu-lost: no row of measured.yml has a pattern for gpu/gpu-lost"):
        covered.by_row([ROW], [checks.load("gpu-lost")])


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        ({"manual": ""}, "has checks without a fix, and no `manual` says why"),
        ({"unmeasured": ""}, "needs `measurement`, or `unmeasured` with the reason"),
        ({"measurement": ["disk"], "unmoved": "because"}, "needs `measurement`, or `unmeasured` with the reason"),
        ({"unmeasured": "", "measurement": ["discs"], "unmoved": "because"}, "there is no measurement discs"),
        (
            {"unmeasured": "", "measurement": ["disk"]},
            "needs `moved` with figures, or `unmoved` with the reason, if it has a measurement",
        ),
        ({"unmoved": "because"}, "needs `moved` with figures, or `unmoved` with the reason, if it has a measurement"),
        (
            {"unmeasured": "", "measurement": ["disk"], "moved": [{"ids": ["swap-no-such*"]}]},
            "`ids` has swap-no-such*, and no check of the row fits it",
        ),
        (
            {"reasons": {"swappiness-high": "because"}},
            "`reasons` has swappiness-high, and no check without a fix fits it",
        ),
    ],
)
def test_a_row_without_a_reason_is_named(change, gap):
    assert list(covered.gaps({**ROW, **change}, SWAP)) == [f"coverage.yml: Swap: {gap}"]


def test_a_row_that_no_check_fits_is_named():
    assert list(covered.gaps(ROW, [])) == ["coverage.yml: Swap: no check fits its patterns"]


def test_a_fix_that_no_machine_proves_needs_a_reason(monkeypatch):
    monkeypatch.setattr(covered, "fixed", frozenset)
    gap = "coverage.yml: Swap: no virtual machine proves the fix of swappiness-high, and `lacking` has no reason"
    assert list(covered.gaps(ROW, SWAP)) == [gap]
    monkeypatch.setattr(covered, "lacking", lambda _check: "a part")
    assert list(covered.gaps(ROW, SWAP)) == []


def test_every_test_that_the_page_names_is_there():
    assert list(covered.lost_tests(covered.stated())) == []


@pytest.mark.parametrize(
    ("fixes", "gap"),
    [
        (
            {"boost-off": "tests/unit/test_words.py::test_no_such"},
            "there is no test tests/unit/test_words.py::test_no_such",
        ),
        ({"boost-off": "tests/unit/no_such.py::test_x"}, "there is no test tests/unit/no_such.py::test_x"),
        ({"gpu-lost": HERE}, "fixes: gpu-lost has no fix"),
        ({"swappiness-high": HERE}, "fixes: swappiness-high is proven on machines"),
    ],
)
def test_a_test_or_fix_that_is_not_there_is_named(fixes, gap):
    said = {"fixes": fixes, "lacking": {}, "measurements": {}, "mutants": []}
    assert list(covered.lost_tests(said)) == [f"coverage.yml: {gap}"]


@pytest.mark.parametrize(
    ("check", "gap"),
    [("gpu-lost", "gpu-lost has no fix"), ("swappiness-high", "swappiness-high is proven on machines")],
)
def test_what_machines_lack_is_said_of_fixes_that_none_proves(check, gap):
    said = {"fixes": {}, "lacking": {"a part": [check]}, "measurements": {}, "mutants": []}
    assert list(covered.lost_tests(said)) == [f"coverage.yml: lacking: {gap}"]
    assert "not possible on a machine without a CPU with turbo" in covered._proof(checks.load("boost-off"))


CELLS = {"row": "Swap", "A": {"is": "whole", "cases": ["swap_on"]}, "F": {"is": "none"}, "V": {"is": "none"}}


def test_every_cell_of_the_table_is_proven_or_has_a_reason():
    table = covered.stated()["table"]
    assert [problem for row in table for problem in covered.lost_cells(row)] == []
    assert [sum(row[column]["is"] == "none" for row in table) for column in "AFV"] == [3, 7, 11]
    assert len(table) == 36


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        ({"A": {"is": "done"}}, "A: `is` needs one of whole"),
        ({"A": {"is": "whole", "test": [HERE]}}, "A: `is` needs one of whole"),
        ({"A": {"is": "whole"}}, "A: whole, and no test proves it"),
        ({"A": {"is": "whole", "tests": [HERE + "_but_not_there"]}}, f"A: no test {HERE}_but_not_there is there"),
        ({"A": {"is": "whole", "cases": ["swap_no"]}}, f"A: no test {covered.JUDGED}[swap_no-fail-0] is there"),
        ({"A": {"is": "whole", "cases": ["swap_on"], "why": "because"}}, "A: whole: `why` is for part and refused"),
        ({"F": {"is": "part"}}, "F: part: `why` is for part and refused"),
        (
            {"F": {"is": "refused", "why": "because"}},
            "F: refused: `why` is for part and refused, the latter with a link",
        ),
        ({"F": {"is": "whole", "fixes": ["gpu-lost"], "tests": [HERE]}}, "F: no test proves the fix of gpu-lost"),
        ({"V": {"is": "part", "why": "no time"}}, "V: say which hardware is missing"),
        ({"V": {"is": "whole", "measures": ["discs"]}}, "V: no test  is there"),
        (
            {"V": {"is": "whole", "measures": ["wakeup"], "moved": ["deep-idle-allowed"]}},
            "V: no figure of measured.yml moved with deep-idle-allowed",
        ),
    ],
)
def test_a_cell_without_proof_or_reason_is_named(change, gap):
    problem = next(covered.lost_cells({**CELLS, **change}))
    assert problem.startswith(f"coverage.yml: table: Swap {gap}")


def test_a_refusal_with_its_source_is_counted():
    refused = {**CELLS, "F": {"is": "refused", "why": "it may [lock up](https://docs.kernel.org)"}}
    assert list(covered.lost_cells(refused)) == []
    assert covered._count([CELLS, refused], "F") == "0 of 1 (1 refused)"


def test_every_measurement_has_a_test_and_a_setting_or_a_reason():
    assert list(covered.unmeasured(covered.stated())) == []


def test_a_measurement_without_a_test_or_a_reason_is_named(monkeypatch):
    monkeypatch.setattr(covered.catalogue, "measurements", lambda: {"disk": None})
    moved = [{"row": "Disks", "moved": [{"figure": "disk read"}]}]
    lacks = [
        "coverage.yml: measurements: no test is named for disk",
        "coverage.yml: measurements: disk needs `unmoved` with the reason, or a row where a setting moved it",
    ]
    assert list(covered.unmeasured({"rows": [], "measurements": {}})) == lacks
    assert list(covered.unmeasured({"rows": moved, "measurements": {"disk": {"tests": [HERE]}}})) == []
    both = {"rows": moved, "measurements": {"disk": {"tests": [HERE], "unmoved": "no disk"}}}
    assert list(covered.unmeasured(both)) == lacks[1:]


def test_what_machines_are_said_to_fix_are_checks_with_a_fix():
    shipped = covered.fixed() & set(checks.catalogue())
    assert [name for name in shipped if checks.load(name).remedy.kind == "manual"] == []
    assert len(shipped) >= 40


def test_a_stale_proof_is_named_and_not_counted(monkeypatch):
    changed = {"swappiness-high": ("a.py", "b.py")}
    monkeypatch.setattr(covered, "stale", lambda check_id: changed.get(check_id, ()))
    stale, current = (covered._check(checks.load(each)) for each in ("swappiness-high", "swap-large"))
    assert stale.endswith("`tests/machines/test_apply.py` (**stale**: `a.py`, `b.py` changed since) |\n")
    assert current.endswith("`tests/machines/test_apply.py` |\n")
    assert "| 2 | 1 | 0, 1 stale |" in covered._overview(ROW, SWAP)


def test_a_kind_of_which_every_proof_is_stale_says_so(monkeypatch):
    covered._kinds.cache_clear()
    monkeypatch.setattr(covered, "stale", lambda check_id: ("a.py",))
    assert "(stale), not possible on a machine" in covered._proof(checks.load("nmi-watchdog-on"))
    covered._kinds.cache_clear()


def test_every_planted_fault_has_its_place():
    assert list(covered.lost_mutants(covered.stated())) == []


@pytest.mark.parametrize("file", ["nodetune/no_such.py", "nodetune/__init__.py"])
def test_a_planted_fault_without_a_place_is_named(file):
    mutant = {"file": file, "code": "no such code"}
    wanted = f"coverage.yml: mutants: {file} has 'no such code' 0 times: correct the line"
    assert list(covered.lost_mutants({"mutants": [mutant]})) == [wanted]

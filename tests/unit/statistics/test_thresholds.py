"""Every number that decides what is worse than its like is in one file, with its source, and on the page about statistics."""

import ast
import re
import sys
from pathlib import Path

import pytest

import nodetune
from nodetune.statistics import thresholds

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

import thresholds_table

PACKAGE = Path(nodetune.__file__).parent
COMPARING = ("audit/fleet", "history", "jobs/late_ranks", "statistics", "tune", "verify", "verify/find_slow")
"""The folders that compare with peers or with the past; what else imports thresholds counts too."""

ALLOWED = {
    "what is read, kept or shown at most": """
        audit/fleet/messages MAX_VALUES MAX_LENGTH; audit/fleet/observations MAX_LENGTH
        history/history BATCH; history/episodes MAX_SHOWN; history/structure FORMS MAX_PLACES PLANS PRINT; history/reader MAX_DAYS
        history/thinning DAYS LARGEST; history/connection SOME HEAD; history/judging MAX_DAYS; history/sound MAX_BITS; history/repair MAX_NAMES
        history/writer MAX_KNOWN; history/snapshot MAX_KINDS
        history/packing LEVEL WINDOW_BITS MEMORY; history/timeline WIDTH THOUSANDTHS
        jobs/late_ranks/inspector MAX_FILES MAX_CALLS MAX_LINE_BYTES HIGHEST; jobs/late_ranks/labels MAX_RANKS
        jobs/late_ranks/lateness MAX_CALLS MAX_KINDS; jobs/late_ranks/ras_response MAX_RANKS BIGGEST
        tune/document LARGEST; tune/headline MAX_CASES; tune/journal MAX_BYTES; tune/space MAX_LENGTH; tune/trials MIN_FIGURE MAX_FIGURE
        verify/baseline LARGEST; verify/document LARGEST; verify/figures MAX_SAMPLES DEEPEST LARGEST MAX_CONDITION
        verify/find_slow/culprits MAX_MORE; verify/find_slow/labels SUREST MAX_ENDS; verify/find_slow/run MAX_CAUSES
    """,
    "times, and words of a protocol": """
        history/connection WAIT_SECONDS LOCK; history/postgres ANSWER_SECONDS IDLE_SECONDS; history/points DAY; history/episodes HOUR; jobs/late_ranks/request PORT; jobs/late_ranks/ras_response STARTING
        jobs/late_ranks/ras_client PROTOCOL COLLECT CONNECT GREETING STEP MAX_SECONDS ATTEMPTS LINE MAX_BYTES
        verify/before_after QUICK_SECONDS; verify/find_slow/host_rounds NEAR_DEADLINE; verify/remote ENDING_SECONDS
        verify/slurm STARTING_SECONDS; verify/suites MIN_LOAD_SECONDS MAX_LOAD_SECONDS LOAD_GRACE
    """,
    "how much is measured, which decides nothing about a figure": """
        tune/run STAGES; tune/search MAX_SURVIVORS MAX_SIMPLER MAX_TO_EXCLUDE; tune/space MAX_SETTINGS BEST_TO_COMBINE
        tune/study FINALISTS; tune/trials MAX_DISTURBED MAX_FAILED STUCK
        verify/find_slow/schedule WITNESSES; verify/find_slow/search MIN_ROUNDS
        verify/retest OTHER_PARTNERS MAX_RETESTED; verify/suites ROUNDS
    """,
    "a name or a mark in place of a number": """
        history/conclusions FLEET; history/repair USUAL OF_FIRST_EDITION; history/judging LOOKED; jobs/late_ranks/model FIRST; jobs/late_ranks/ras_response ERRORS
        statistics/likelihood BAD; statistics/paired BEFORE AFTER
        verify/reach REACHED SHORT_ONLY LOST
    """,
    "mathematics": "statistics/likelihood QUARTILE; statistics/outliers MAD_TO_SIGMA; statistics/distributions QUANTILE",
    "a limit of the hardware, with no peer and no past": "verify/findings MANY_RETRANSMITS; verify/hardware_limits PAYLOAD",
    "of measurements, which say how far their figures vary": "verify/catalogue TOLERANCE",
    "a ladder of settings, and rows for NCCL": "tune/benches/gpu LOWEST MAX_MILLIWATTS; tune/benches/nccl_tuner NEAR MAX_CHANNELS WITH_CHANNELS",
}
PLAIN = (0.0, 0.5, 1.0, 2.0, 100.0)
INLINE = {
    "history/resets": {0.1, 0.9},  # near the width of a counter
    "jobs/late_ranks/request": {5.0, 600.0},  # seconds
    "tune/benches/gpu": {0.03, 3.0},  # defaults of options
    "tune/document": {5e-05},  # rounding
    "tune/request": {1200.0},  # seconds
    "verify/catalogue": {20.0},  # seconds
    "verify/efficiency": {1e6},  # units
    "verify/find_slow/classify": {99.0},  # odds of what was not met
    "verify/find_slow/conclude": {50.0},  # no overflow
    "verify/find_slow/culprits": {1e-6},  # no division by zero
    "verify/find_slow/host_rounds": {60.0},  # seconds
    "verify/find_slow/labels": {0.1, 50.0, 1e-12},  # what is shown
    "verify/hardware_limits": {1000.0},  # units
    "verify/request": {0.001, 10.0, 60.0, 600.0},  # price and seconds
    "verify/rooflines": {1000.0},  # units
}


def comparing():
    """Return name → tree of each module that compares."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name, text = path.relative_to(PACKAGE).with_suffix("").as_posix(), path.read_text("utf-8")
        if name != "statistics/thresholds" and (name.rpartition("/")[0] in COMPARING or "nodetune.statistics" in text):
            found[name] = ast.parse(text)
    return found


def is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def constants(tree):
    """Return the names that a module gives to values made of numbers."""
    for each in tree.body:
        value = getattr(each, "value", None)
        if isinstance(each, ast.Assign | ast.AnnAssign) and value is not None and any(map(is_number, ast.walk(value))):
            words = any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in ast.walk(value))
            for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
                names = [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
                yield from () if words and not isinstance(value, ast.Dict | ast.Tuple) else names


def allowed():
    for reasons in ALLOWED.values():
        for line in filter(None, (part.strip() for part in re.split(r";|\n", reasons))):
            module, *names = line.split()
            yield from ((module, name) for name in names)


MODULES = comparing()


def test_the_modules_that_compare_are_found():
    assert {"audit/fleet/consensus", "tune/benches/gpu", "tune/confirm", "verify/evaluate", "history/trends"} <= set(
        MODULES
    )


def test_a_module_that_compares_defines_no_threshold_of_its_own():
    own = {(module, name) for module, tree in MODULES.items() for name in constants(tree)}
    assert own - set(allowed()) == set(), "to nodetune/statistics/thresholds.py, or to ALLOWED with a reason"
    assert set(allowed()) - own == set(), "it is gone: remove it from ALLOWED"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_that_compares_hides_no_threshold_in_a_function(module):
    inside = [each for each in MODULES[module].body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    found = {node.value for each in inside for node in ast.walk(each) if is_number(node) and type(node.value) is float}
    assert found - {*PLAIN, *INLINE.get(module, ())} == set(), "name it in nodetune/statistics/thresholds.py"


def test_each_form_of_a_threshold_in_the_wrong_place_is_found():
    tree = ast.parse(
        "A = 3\nB: float = -0.5\nC, D = 1, 2.0\nE = range(4, 9)\nF = log(3)\nG = 'x'\nH = {'a': 5}\ndef f(x=0.3): pass"
    )
    assert list(constants(tree)) == ["A", "B", "C", "D", "E", "F", "H"]


def test_every_threshold_says_what_it_decides_and_where_it_comes_from():
    every = list(thresholds_table.every())
    named = {name for each in every for name in each.names}
    assert named == {name for name in vars(thresholds) if name.isupper()}
    assert all(each.decides.endswith(".") and len(each.source) > 5 for each in every)
    benchmarks = {found for each in every for found in re.findall(r"benchmarks/\w+\.py", each.source)}
    assert len(benchmarks) >= 4
    assert [name for name in benchmarks if not (PACKAGE.parent / name).exists()] == []


def test_every_threshold_decides_something():
    sources = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert [
        name for each in thresholds_table.every() for name in each.names if len(re.findall(rf"\b{name}\b", sources)) < 2
    ] == []


def test_a_threshold_without_a_word_is_refused(monkeypatch, tmp_path):
    (tmp_path / "statistics").mkdir()
    (tmp_path / "statistics" / "thresholds.py").write_text("# Peers. Source: none\n\nMIN_ALIKE = 8\n")
    monkeypatch.setattr(thresholds_table.paths, "PACKAGE", tmp_path)
    with pytest.raises(ValueError, match="MIN_ALIKE: say below it what it decides"):
        list(thresholds_table.every())

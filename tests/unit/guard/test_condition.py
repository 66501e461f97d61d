"""What looks at a node make of its condition in Kubernetes."""

import random

import pytest

from nodetune.guard.node import condition as conditions
from nodetune.guard.node.condition import ALL, CheckResults, Condition, RecentChecks

GOOD, BAD, OTHER = CheckResults({}), CheckResults({"gpu-lost": "GPU3: lost"}), CheckResults({"gpu-missing": "7 of 8"})
BLIND = CheckResults({}, why="the health check did not answer")
PROBLEM = Condition("True", "GatingCheckFails", ("gpu-lost",))
HEALTHY = Condition("False", "GatingChecksPass")


def after(looks, enforced=(ALL,)):
    kept = RecentChecks(enforced)
    for each in looks:
        kept.add(each)
    return kept.condition()


@pytest.mark.parametrize(
    ("looks", "condition"),
    [
        ([], None),
        ([BAD, BAD], None),
        ([BAD, BAD, BAD], PROBLEM),
        ([GOOD, GOOD, GOOD], HEALTHY),
        ([BAD, BAD, GOOD], None),
        ([BAD, BLIND, BAD], None),
        ([BAD, BAD, BAD, BLIND], None),
        ([BAD, OTHER, BAD], None),
        ([GOOD, CheckResults({}, {"gpu-lost": "not read"}), GOOD], None),
        ([BAD, CheckResults({**BAD.failed, **OTHER.failed}), BAD], PROBLEM),
        ([CheckResults(BAD.failed, {"gpu-missing": "not read"})] * 3, PROBLEM),
        ([BAD, BAD, BAD, GOOD, GOOD, GOOD], HEALTHY),
    ],
)
def test_three_looks_in_a_row_must_agree(looks, condition):
    assert after(looks) == condition


def test_a_check_that_is_not_enforced_is_only_observed():
    found = after([BAD] * 3, ["gpu-missing"])
    assert found == Condition("False", "GatingCheckWouldFail", ("gpu-lost",))
    assert found.message == "observed only: gpu-lost: GPU3: lost"
    assert after([BAD] * 3, []).status == "False"
    assert after([BAD, CheckResults({}, {"gpu-lost": "not read"}), GOOD], ["gpu-missing"]) == HEALTHY
    assert after([GOOD, CheckResults({}, {"gpu-lost": "not read"}), GOOD], []) is None


def test_a_gap_begins_a_new_row():
    kept = RecentChecks([ALL])
    kept.add(BAD)
    kept.add(BAD)
    kept.forget()
    kept.add(BAD)
    assert kept.condition() is None


def test_the_message_is_one_bounded_line():
    found = after([CheckResults({"gpu-lost": "a\nb\x1b[0m" + "x" * 1000})] * 3)
    assert found.message.startswith("gpu-lost: a b\\x1b[0mx")
    assert len(found.message) <= conditions.MAX_MESSAGE_LENGTH
    assert found.message.isprintable()


RESULTS = [
    ({"verdict": "pass", "findings": [], "unknown": []}, GOOD),
    ({"verdict": "fail", "findings": [{"check": "gpu-lost", "observed": "gone", "subjects": "GPU3: lost"}]}, BAD),
    ({"verdict": "inconclusive", "reason": BLIND.why}, BLIND),
    ({"verdict": "inconclusive", "unknown": [{"check": "gpu-lost"}]}, CheckResults({}, {"gpu-lost": "not read"})),
]


@pytest.mark.parametrize(("result", "seen"), RESULTS)
def test_the_result_of_a_health_check_is_a_look(result, seen):
    found = conditions.look(result)
    assert (dict(found.failed), tuple(found.unknown), found.why) == (dict(seen.failed), tuple(seen.unknown), seen.why)


@pytest.mark.parametrize("result", [{}, [], None, "pass", {"verdict": "well"}])
def test_what_is_no_result_is_a_look_at_nothing(result):
    assert conditions.look(result).why


def test_no_fault_of_less_than_three_looks_changes_it():
    chance = random.Random(36)
    kept, row = RecentChecks([ALL]), []
    for _ in range(1000):
        look = chance.choice([GOOD] * 6 + [BAD] * 3 + [OTHER, BLIND, CheckResults({}, {"gpu-lost": "not read"})])
        row = [*row, look][-3:]
        kept.add(look)
        found = kept.condition()
        if found and found.status == "True":
            assert all(found.checks[0] in each.failed for each in row)
        elif found:
            assert not any(each.failed or each.unknown or each.why for each in row)

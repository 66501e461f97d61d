"""The p value and Holm's correction, against scipy-like enumeration."""

from itertools import combinations, product

import pytest

from nodetune.statistics import rank_tests


def enumerated(before, after):
    """The same chance by going through all orders."""
    pooled = sorted([*before, *after])
    observed = sum(late < early for early in before for late in after)
    reached = total = 0
    for chosen in combinations(range(len(pooled)), len(after)):
        late = [pooled[at] for at in chosen]
        early = [each for at, each in enumerate(pooled) if at not in chosen]
        total += 1
        reached += sum(one < other for other in early for one in late) <= observed
    return reached / total


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
        ([1, 4, 6, 9], [2, 3, 5, 10, 11]),
        ([5, 6, 7], [1, 2, 3]),
        ([3, 8], [1, 4, 9]),
    ],
)
def test_the_p_value_is_that_of_all_orders(before, after):
    assert rank_tests.p_larger(before, after) == pytest.approx(enumerated(before, after))


@pytest.mark.parametrize(
    "pairs", [[1, 2, 3, 4, 5, 6, 7, 8], [3, -1, 2, 6, -4, 5], [-1, -2, -3], [5, 1, -2, 7, 8, 9, 3]]
)
def test_the_p_value_of_pairs_is_that_of_all_signs(pairs):
    size = [abs(each) for each in pairs]
    rank = {each: at for at, each in enumerate(sorted(size), 1)}
    observed = sum(rank[abs(each)] for each in pairs if each > 0)
    sums = [
        sum(rank[each] for each, sign in zip(size, signs, strict=True) if sign)
        for signs in product((False, True), repeat=len(pairs))
    ]
    expected = sum(each >= observed for each in sums) / len(sums)
    assert rank_tests.p_positive(pairs) == pytest.approx(expected)


def test_the_interval_of_pairs_has_what_the_test_does_not_reject():
    pairs = [0.9, 1.1, 1.0, 1.3, 0.7, 1.2, 0.8, 1.05, 0.95, 1.15]
    middle, low, high = rank_tests.paired_shift(pairs, 0.01)
    assert middle == pytest.approx(1.0, abs=0.03)
    assert low < middle < high
    assert rank_tests.p_positive([each - low + 1e-9 for each in pairs]) <= 0.005
    assert rank_tests.p_positive([each - low - 1e-9 for each in pairs]) > 0.0029
    assert rank_tests.paired_shift(pairs[:7], 0.01) is None


def test_samples_that_are_all_equal_show_nothing():
    assert rank_tests.p_larger([1.0] * 10, [1.0] * 10) > 0.5


def test_holm_keeps_the_order_and_never_exceeds_one():
    assert rank_tests.holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert rank_tests.holm([0.6, 0.5]) == [1.0, 1.0]
    assert rank_tests.holm([]) == []

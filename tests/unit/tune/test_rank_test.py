"""The p value and Holm's correction, against scipy-like enumeration."""

from itertools import combinations

import pytest

from nodetune.foundation import rank_statistics


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
    assert rank_statistics.p_larger(before, after) == pytest.approx(enumerated(before, after))


def test_samples_that_are_all_equal_show_nothing():
    assert rank_statistics.p_larger([1.0] * 10, [1.0] * 10) > 0.5


def test_holm_keeps_the_order_and_never_exceeds_one():
    assert rank_statistics.holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert rank_statistics.holm([0.6, 0.5]) == [1.0, 1.0]
    assert rank_statistics.holm([]) == []

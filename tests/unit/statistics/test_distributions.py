"""Tails and quantiles against exact sums and published tables."""

from math import comb

import pytest

from nodetune.statistics.distributions import _student_quantile, binomial_tail, normal_tail, student_tail


@pytest.mark.parametrize(
    ("least", "of", "chance"), [(0, 5, 0.3), (1, 1, 0.2), (7, 20, 0.25), (20, 20, 0.25), (3, 64, 0.01)]
)
def test_the_tail_of_hits_is_their_sum(least, of, chance):
    exact = sum(comb(of, hits) * chance**hits * (1 - chance) ** (of - hits) for hits in range(least, of + 1))
    assert binomial_tail(least, of, chance) == pytest.approx(exact, rel=1e-12)


def test_more_hits_than_tries_never_happen():
    assert binomial_tail(6, 5, 0.5) == 0.0
    assert binomial_tail(0, 0, 0.5) == 1.0


def test_the_normal_tail_is_that_of_the_table():
    assert [normal_tail(each) for each in (0, 1.96, -1.96)] == pytest.approx([0.5, 0.025, 0.975], abs=1e-5)


@pytest.mark.parametrize(("freedom", "quantile"), [(5, 4.032), (10, 3.169), (30, 2.750)])
def test_student_s_tail_and_quantile_are_those_of_the_table(freedom, quantile):
    assert student_tail(quantile, freedom) == pytest.approx(0.005, rel=0.04)
    assert _student_quantile(freedom) == pytest.approx(quantile, rel=0.01)
    assert student_tail(0, freedom) == 1.0, "the middle is not late"

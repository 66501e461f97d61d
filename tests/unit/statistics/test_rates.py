"""A rate against a rate: as exact tests elsewhere say, with few false names and with the guilty named."""

import random
from fractions import Fraction
from math import comb

import pytest

from nodetune.statistics.rates import Episodes, p_higher, p_values


def test_the_chance_is_that_of_all_ways_to_share_the_episodes():
    share = Fraction(90, 90 + 900)
    exact = sum(comb(9, hits) * share**hits * (1 - share) ** (9 - hits) for hits in range(4, 10))
    assert p_higher(4, 90, 5, 900) == pytest.approx(float(exact), rel=1e-12)


def test_the_chance_is_that_of_the_example_in_r():
    """poisson.test(c(11, 6+8+7), c(800, 1083+1050+878), alternative = "two.sided"): p-value = 0.07967."""

    def exactly(count):
        return p_higher(count, 800, 32 - count, 3011) - p_higher(count + 1, 800, 31 - count, 3011)

    assert sum(each for count in range(33) if (each := exactly(count)) <= exactly(11) * (1 + 1e-7)) == pytest.approx(
        0.07967, abs=5e-6
    )


@pytest.mark.parametrize(("count", "days", "others", "other_days"), [(0, 90, 5, 900), (5, 90, 0, 0), (3, 0, 5, 900)])
def test_no_episode_no_time_and_no_like_show_nothing(count, days, others, other_days):
    assert p_higher(count, days, others, other_days) == 1.0


def test_many_episodes_are_no_overflow():
    assert 0.3 < p_higher(1000, 1, 99_000, 99) < 0.7
    assert p_higher(2000, 1, 98_000, 99) < 1e-100


def test_a_host_is_compared_with_its_like_alone():
    often = [Episodes(f"old{number}", "old", 9, 90) for number in range(9)]
    seldom = [Episodes(f"new{number}", "new", 0, 90) for number in range(9)]
    assert min(p_values([*often, *seldom])) == 1.0
    one = Episodes("new9", "new", 9, 90)
    assert p_values([*often, *seldom, one])[-1] < 1e-6
    assert p_values([Episodes("alone", "only", 50, 90)]) == [1.0]


def test_a_host_that_was_watched_longer_may_have_more():
    short = [Episodes(f"a{number}", "x", 1, 10) for number in range(20)]
    assert p_values([*short, Episodes("long", "x", 9, 90)])[-1] == 1.0
    assert p_values([*short, Episodes("short", "x", 9, 10)])[-1] < 0.01


def fleet(seed, worse=0):
    """200 hosts with half an episode each in 90 days, of which some have twenty times as many."""
    rng = random.Random(seed)

    def count(rate):
        at, found = rng.expovariate(rate), 0
        while at < 90:
            found, at = found + 1, at + rng.expovariate(rate)
        return found

    return [Episodes(str(number), "x", count(0.5 / 90 * (20 if number < worse else 1)), 90) for number in range(200)]


def test_of_hundred_fleets_that_are_well_hardly_one_has_a_name():
    named = sum(min(p_values(fleet(seed))) < 0.01 for seed in range(100))
    assert named <= 1, "of a level of 1 %"


def test_hosts_with_twenty_times_the_episodes_are_named():
    found = [[p < 0.01 for p in p_values(fleet(seed, worse=3))] for seed in range(20)]
    assert sum(sum(each[:3]) for each in found) >= 48
    assert sum(sum(each[3:]) for each in found) <= 1

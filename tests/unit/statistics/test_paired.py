"""The engine of paired comparison: any two states, in any order, with any verdict."""

import math
import random

import pytest

from nodetune.statistics import paired
from nodetune.statistics.paired import AFTER, BEFORE, Pairs

LOOKS = ((6, 0.01), (10, 0.02))


class Host:
    """A host with two states, whose figure falls by a drift from each run to the next."""

    def __init__(self, gain=0.0, drift=0.0, noise=0.0, fails_at=None):
        self.gain, self.drift, self.noise, self.fails_at = gain, drift, noise, fails_at
        self.rng, self.states = random.Random(1), []

    def measure(self, order):
        figures = []
        for side in order:
            if len(self.states) == self.fails_at:
                return None
            figures.append(self.gain * side - self.drift * len(self.states) + self.rng.gauss(0, self.noise))
            self.states.append(side)
        return figures


def mirrored(number):
    """The plan A B B A."""
    return (BEFORE, AFTER) if number % 2 == 0 else (AFTER, BEFORE)


def test_both_sides_are_measured_in_each_pair_in_the_order_that_was_asked_for():
    host = Host(gain=1.0)
    pairs = Pairs(host.measure, mirrored)
    assert pairs.reach(4)
    assert host.states == [0, 1, 1, 0, 0, 1, 1, 0]
    assert (pairs.before, pairs.after) == ([0.0] * 4, [1.0] * 4)
    assert pairs.reach(3), "there are more already"
    assert len(host.states) == 8


def test_a_random_order_has_either_side_first():
    host = Host()
    Pairs(host.measure, paired.shuffled(random.Random(1))).reach(20)
    firsts = host.states[::2]
    assert 4 < sum(firsts) < 16
    assert all(first + second == 1 for first, second in zip(firsts, host.states[1::2], strict=True))


def test_a_clear_look_is_the_last_and_knows_its_level():
    host, levels = Host(), []
    found = Pairs(host.measure, mirrored).judged(LOOKS, lambda level: levels.append(level) or "clear", lambda _: True)
    assert (found, levels, len(host.states)) == ("clear", [0.01], 12)


def test_without_a_clear_look_the_last_one_counts():
    host, levels = Host(), []
    found = Pairs(host.measure, mirrored).judged(LOOKS, lambda level: levels.append(level) or "open", lambda _: False)
    assert (found, levels, len(host.states)) == ("open", [0.01, 0.02], 20)


@pytest.mark.parametrize("fails_at", [0, 7, 15])
def test_a_side_that_cannot_be_measured_ends_it_without_half_a_pair(fails_at):
    pairs = Pairs(Host(fails_at=fails_at).measure, mirrored)
    assert pairs.judged(LOOKS, lambda _: "open", lambda _: False) is None
    assert len(pairs.before) == len(pairs.after) == fails_at // 2


def test_what_the_measurement_raises_passes_and_keeps_whole_pairs():
    def measure(order):
        if len(pairs.after) == 3:
            raise TimeoutError
        return [0.0 for _ in order]

    pairs = Pairs(measure, mirrored)
    with pytest.raises(TimeoutError):
        pairs.reach(5)
    assert len(pairs.before) == len(pairs.after) == 3


def test_a_drift_larger_than_the_noise_hides_no_gain_and_makes_none():
    for gain in (0.0, 0.03):
        pairs = Pairs(Host(gain, drift=0.01, noise=0.001).measure, mirrored)
        pairs.reach(10)
        found = paired.shift(pairs.before, pairs.after, 0.01)
        assert found.low <= math.expm1(gain) <= found.high
        assert found.high - found.low < 0.05
        assert (found.p < 0.01) == (gain > 0)
        assert found.p_smaller > 0.3


def test_too_few_pairs_for_the_level_are_refused():
    with pytest.raises(ValueError, match="3 pairs are too few for a level of 0.01"):
        paired.shift([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 0.01)


def test_the_better_of_two_tests_counts_twice():
    before, after = [float(each) for each in range(8)], [each + 0.5 for each in range(8)]
    assert paired.p_of_both(before, after) == pytest.approx(2 / 2**8)
    assert paired.p_of_both(before[:6], after[:6]) > 0.2, "of so few, pairs are not compared"

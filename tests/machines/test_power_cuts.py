"""The power goes at ten moments of an apply, and at three of a rollback, counted by changes: nothing is lost."""

import pytest

from tests.machines.faults import SEVERAL, at_change, ended

CUTS = 10


def spread(number, of, changes):
    """The number of a change, so that `of` of them lie evenly between the first and the last."""
    return 1 + number * (changes - 1) // (of - 1)


@pytest.mark.parametrize("number", range(CUTS))
def test_a_power_cut_of_an_apply_loses_nothing(site, cycle, number):
    dead = cycle.cut(at_change(site, spread(number, CUTS, cycle.changes)), site.cut_power)
    cycle.go_on(dead)


@pytest.mark.parametrize("number", range(3))
def test_a_rollback_goes_on_after_a_power_cut(site, cycle, number):
    answer = site.apply(SEVERAL)
    assert answer.code == 0, answer
    process, run = site.begin("rollback", answer.run)
    at_change(site, spread(number, 3, cycle.changes))(process, run)
    site.machine.power_cut()
    cut = ended(process)
    assert (cut.code, [each["state"] for each in cut.data["hosts"]]) == (3, ["unreachable"]), cut
    site.machine.power_on()
    cycle.take_back(answer.run)

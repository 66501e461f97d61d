"""Faults planted in a synthetic fleet are found, all of them, and nothing else is."""

import pytest

from benchmarks.support import synthetic_fleet as synthetic
from nodetune.audit import fleet
from nodetune.checks import fleet_comparisons


def told(count, seed, each):
    census, planted = fleet.FleetComparison(), {}
    for host, fault in synthetic.hosts(count, seed, each):
        census.add(host)
        if fault:
            planted[host.host] = fault
    found = fleet.findings(census)
    failing = {
        (host, one.check) for host, runs in found.items() for each in runs for one in each if one.status == "fail"
    }
    return set(planted.items()), failing


def test_every_comparison_has_a_fault_to_plant():
    assert set(synthetic.PLANTS) == set(fleet_comparisons.every())


@pytest.mark.parametrize("seed", [1, 2])
def test_all_planted_differences_are_found_and_no_other(seed):
    planted, failing = told(300, seed, each=1)
    assert len(planted) == len(synthetic.PLANTS)
    assert failing == planted


def test_a_healthy_fleet_with_its_noise_raises_nothing():
    planted, failing = told(300, 3, each=0)
    assert not planted
    assert not failing


def test_what_the_collector_keeps_does_not_grow_with_equal_hosts():
    base = synthetic.machines()[0][1]
    census = fleet.FleetComparison()
    for number in range(50):
        census.add(type(base)(f"a{number}", base.facts))
    kept = len(census._interned)
    for number in range(50):
        census.add(type(base)(f"b{number}", base.facts))
    assert len(census._interned) == kept

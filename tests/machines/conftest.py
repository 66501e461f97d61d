"""Fixtures over virtual machines; tests of this folder are slow. See docs/project/testing-fleet.md."""

import os
from pathlib import Path

import pytest

from tests.machines import inventory, template
from tests.machines.faults import Cycle, Site
from tests.machines.pool import Fleet

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(str(item.fspath)).parent == HERE:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.fleet)


@pytest.fixture(scope="session")
def fleet():
    """Starts machines: fleet(2), fleet(1, mode="cold"). They stay for the session; fleet.stop(machine) ends one."""
    if os.geteuid():
        pytest.skip("building virtual machines needs root (CI has it)")
    with Fleet(template.ensure()) as made:
        yield made


@pytest.fixture(scope="session")
def machine(fleet):
    """One machine that all tests share: leave it as you found it."""
    return fleet(1)[0]


@pytest.fixture
def fresh_machine(fleet):
    """A machine that is this test's own."""
    made = fleet(1)[0]
    yield made
    fleet.stop(made)


@pytest.fixture
def inventory_of(tmp_path):
    """Writes an inventory of machines, for `nodetune -i` and for Ansible: inventory_of([machine], user="op", …)."""

    def write(machines, **given):
        return inventory.write(tmp_path / "inventory.yml", machines, **given)

    return write


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    """One machine, with the faults that the tests of faults and power cuts fix."""
    (machine,) = fleet(1)
    yield Site(machine, tmp_path_factory.mktemp("site"))
    fleet.stop(machine)


@pytest.fixture(scope="module")
def cycle(site):
    """Apply and rollback of that machine, with what it was before."""
    return Cycle(site)

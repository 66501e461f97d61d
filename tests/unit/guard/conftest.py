"""Nodes for the tests of the guard: the program is put together once, the stand-in NVML built once."""

import pytest

from tests.unit.guard import install


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return install.program(tmp_path_factory.mktemp("guard") / "program")


@pytest.fixture(scope="session")
def nvml(tmp_path_factory):
    if not install.can_build():
        pytest.skip("no gcc or no make here")
    return install.stand_in(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def machine():
    made = install.Machine()
    yield made
    made.end()


@pytest.fixture
def bare(tmp_path, program):
    """A node without NVML."""
    return install.Node(tmp_path / "node", program)


@pytest.fixture
def node(tmp_path, program, nvml, machine):
    """A node with eight GPUs."""
    return install.Node(tmp_path / "node", program, nvml, machine)

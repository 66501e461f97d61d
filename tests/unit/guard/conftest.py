"""Nodes for the tests of the guard: the program is put together once, NVML's substitute is copied once."""

import pytest

from tests.support import nvml_substitute
from tests.unit.guard import install


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return install.program(tmp_path_factory.mktemp("guard") / "program")


@pytest.fixture(scope="session")
def nvml(tmp_path_factory):
    if missing := nvml_substitute.compiler_missing():
        pytest.skip(missing)
    return nvml_substitute.copied(tmp_path_factory.mktemp("nvml"))


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

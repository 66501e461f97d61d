"""Fixtures over real sshds; tests of this folder are slow."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from farm import SSHD, Farm

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(str(item.fspath)).parent == HERE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def sshd():
    """The path of sshd; skips, saying so, where there is none."""
    if SSHD is None:
        pytest.skip("no sshd on this machine: apt install openssh-server (CI does)")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    return SSHD


@pytest.fixture(scope="session")
def new_farm(sshd):
    """Makes farms, in folders that other users may enter (pytest's own are closed to them)."""
    farms = []

    def make():
        folder = Path(tempfile.mkdtemp(prefix="nodetune-farm-"))
        folder.chmod(0o755)
        farms.append(Farm(folder))
        return farms[-1]

    yield make
    for farm in farms:
        farm.stop()
        shutil.rmtree(farm.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def farm(new_farm):
    """Two good hosts, known and reachable: farm.good."""
    made = new_farm()
    made.good = [made.address(), made.address()]
    made.start(dict.fromkeys(made.good, ()))
    for each in made.good:
        made.know(each)
    return made

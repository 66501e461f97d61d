"""Fixtures over real sshds; tests of this folder are slow."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from farm import SSHD, Farm, keygen
from roots import MIRRORS, archive, run

from tests.support.pages import ROOT

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


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """A checkout whose last commit is the working tree of the tests."""
    folder = tmp_path_factory.mktemp("release") / "checkout"
    listed = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(None, listed.split("\0")):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    git = ("git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.org")
    run("git", "init", "-q", folder)
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "all")
    return folder


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "signing"
    keygen(path)
    return path


@pytest.fixture(scope="session")
def dist(checkout, signing_key):
    """The folder of a whole release. Tests that share it are of the group release: it takes a minute."""
    run(sys.executable, checkout / ".ci/release.py", "--key", signing_key)
    return checkout / "dist"


@pytest.fixture(scope="session", params=list(MIRRORS))
def root_archive(request, tmp_path_factory):
    """A clean root of each distribution, as an archive."""
    return archive(request.param, tmp_path_factory.mktemp("root") / "root.tar")

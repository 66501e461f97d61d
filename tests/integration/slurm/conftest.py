"""Folders of clusters, and what all guarded clusters share, which is made once."""

import shutil
import tempfile
from pathlib import Path

import guarded
import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """The tests of a file share its cluster: other workers would each start one of their own."""
    for item in items:
        if item.path.parent == HERE and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def opened(prefix):
    """A folder that users of daemons can enter: pytest's own are closed to them, and again by every pytest that starts."""
    made = Path(tempfile.mkdtemp(prefix=prefix))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def place():
    """Where a cluster of a module lives."""
    yield from opened("nodetune-slurm-")


@pytest.fixture(scope="session")
def parts():
    for folder in opened("nodetune-guard-"):
        yield guarded.parts(folder)

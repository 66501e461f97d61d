"""Finds the code that runs on hosts, and gives a run on a host whose state lies in a folder of the test."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
sys.path.insert(0, str(PLAYBOOKS / "module_utils"))

from nodetune_host import core  # noqa: E402
from nodetune_host.executor import DryRun, Executor  # noqa: E402
from nodetune_host.journal import Journal  # noqa: E402

from tests.support import nvml_substitute  # noqa: E402


@pytest.fixture
def home(tmp_path):
    """Where the journals of the test's host lie."""
    return tmp_path / "state"


@pytest.fixture
def do(home):
    """do([changes]) makes changes as one group of a run; do.check is their dry run; do.back rolls a run back."""

    def make(changes, run="run-1", group="group", checks=()):
        return _result(lambda result: core.do(changes, Executor(Journal(run, str(home))), result, group, checks))

    def check(changes, run="run-1", group="group", checks=()):
        return _result(lambda result: core.do(changes, DryRun(Journal(run, str(home))), result, group, checks))

    def back(run="run-1", own="back-1", force=False, executor=Executor):
        entries = Journal(run, str(home)).entries()
        return _result(lambda result: core.revert(entries, executor(Journal(own, str(home))), result, force))

    make.check, make.back = check, back
    return make


@pytest.fixture(scope="session")
def library():
    """The folder of NVML's substitute."""
    if missing := nvml_substitute.compiler_missing():
        pytest.skip(missing)
    return nvml_substitute.library()


def _result(action):
    result = core.Result()
    action(result)
    return SimpleNamespace(**result.data())

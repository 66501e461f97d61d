"""Which nodes Slurm can give, by what sinfo says of their states and partitions."""

import pytest

from nodetune.remote.slurm import sinfo


def node(state="idle", partitions=("batch",), default=True):
    return sinfo.Node(state, "new fans", 4, 8, 1000, frozenset(partitions), default)


@pytest.fixture(autouse=True)
def _no_partition(monkeypatch):
    for name in ("SLURM_PARTITION", "SALLOC_PARTITION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("state", "new_job", "step"),
    [
        ("idle", True, True),
        ("mixed", True, True),
        ("draining", False, True),
        ("drained", False, True),
        ("down", False, False),
        ("idle*", False, False),
        ("idle~", False, False),
    ],
)
def test_a_drained_node_takes_only_steps_of_a_running_job(state, new_job, step):
    nodes = {"n01": node(state)}
    why = {"n01": f"Slurm reports {state} (new fans)"}
    assert sinfo.not_to_be_had(["n01"], nodes) == ({} if new_job else why)
    assert sinfo.not_inside(["n01"], nodes, ["n01"]) == ({} if step else why)


def test_a_node_of_another_partition_says_how_to_ask_for_it(monkeypatch):
    nodes = {"n01": node(partitions=("long", "gpu"), default=False)}
    assert sinfo.not_to_be_had(["n01", "n02"], nodes) == {
        "n01": "it is not in the default partition: set SLURM_PARTITION=gpu,long",
        "n02": "Slurm has no node with this name",
    }
    monkeypatch.setenv("SLURM_PARTITION", "debug,gpu")
    assert sinfo.not_to_be_had(["n01"], nodes) == {}


def test_a_node_outside_of_the_allocation_is_named():
    assert sinfo.not_inside(["n03"], {"n03": node()}, ["n01", "n02"]) == {
        "n03": "it is not in this allocation (n[01-02])"
    }

"""When a node counts as out of service, by the states that scontrol prints."""

import pytest
from nodetune_host import scheduler


@pytest.fixture
def in_service(tmp_path, monkeypatch):
    """in_service(state): the answer on a node of which scontrol prints this state."""
    slurmd = {"slurmd": (1, ["slurmd", "-N", "n01"])}
    monkeypatch.setattr(scheduler, "process_of", lambda name: slurmd.get(name, (0, [])))
    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", f"{tmp_path}:/usr/bin:/bin")

    def ask(state):
        tool = tmp_path / "scontrol"
        tool.write_text(f"#!/bin/sh\necho 'NodeName=n01 State={state} Reason=bad DIMM [root@2026-11-21T10:00:00]'\n")
        tool.chmod(0o755)
        return scheduler.in_service()

    return ask


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "DOWN+DRAIN", "DOWN+DRAIN+NOT_RESPONDING"])
def test_a_drained_node_is_out_of_service(in_service, state):
    assert in_service(state) == ""


@pytest.mark.parametrize(
    "state",
    [
        "ALLOCATED+DRAIN",
        "MIXED+DRAIN",
        "COMPLETING+DRAIN",
        "IDLE+COMPLETING+DRAIN",
        "BLOCKED+DRAIN",
        "IDLE+DRAIN+POWERING_DOWN",
    ],
)
def test_a_drained_node_with_work_left_is_not_free(in_service, state):
    assert in_service(state) == f"Slurm jobs still run here (n01 is {state})"


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "DOWN"])
def test_a_node_that_is_not_drained_is_in_service(in_service, state):
    assert in_service(state).startswith(f"Slurm may start jobs here (n01 is {state})")

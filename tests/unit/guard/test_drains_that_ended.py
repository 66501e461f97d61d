"""A drain that someone ended by Slurm's own commands is over in the history, too."""

from nodetune.api.conclusion import Action
from nodetune.guard.deploy import conclude
from nodetune.guard.deploy.status import Status

DRAINED = Action("drained", "n1", 100, "Slurm", "fan")
BACK = Action("resumed", "n1", 200, "Slurm", "in service again")


def node(out_of_service, name="n1"):
    return Status(name, "DRAINED" if out_of_service else "IDLE", out_of_service, "")


def test_a_node_in_service_that_was_drained_was_resumed():
    assert conclude.resumed([node(False)], [DRAINED], 200) == [BACK]


def test_it_was_resumed_once_and_a_node_that_is_out_of_service_or_never_was_is_not():
    assert conclude.resumed([node(False)], [DRAINED, BACK], 300) == []
    assert conclude.resumed([node(True), node(False, "n2")], [DRAINED, Action("rebooted", "n2", 150)], 300) == []

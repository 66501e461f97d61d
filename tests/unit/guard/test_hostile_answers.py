"""What a node answers about its guard may have any shape: no other node's answer is lost."""

import pytest

from nodetune.guard.deploy import playbooks
from nodetune.remediation.ansible.events import Event, Outcome

FOLDER = "/opt/nodetune/guard/0.1.0-0123456789abcdef"


@pytest.mark.parametrize("wrong", ["x", [], {}, None, True, "1e999", 10**400, float("nan"), float("inf")])
def test_a_time_of_a_folder_may_be_anything(wrong):
    files = [{"path": FOLDER, "mtime": wrong}, {"path": wrong, "mtime": 1}, wrong]
    event = Event("a", "Programs", result={"files": files})
    assert isinstance(playbooks._answer(Outcome("a", results=(event,))).folders, tuple)


def test_the_newest_folder_comes_last():
    found = [{"path": f"{FOLDER[:-1]}{n}", "mtime": time} for n, time in ((1, 5.0), (2, 3), (3, "x"))]
    answer = playbooks._answer(Outcome("a", results=(Event("a", "Programs", result={"files": found}),)))
    assert [each[-1] for each in answer.folders] == ["3", "2", "1"]

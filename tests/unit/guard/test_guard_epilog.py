"""What an epilog compares, and which processes it may end."""

import os
import subprocess

import pytest

from nodetune.guard.node import epilog, leftover_processes
from nodetune.guard.node.job import Job

NOBODY = 65534


def test_growth_is_what_is_new_and_nothing_where_nothing_was_read_before():
    count = {"each": {"GPU0": {"value": 3}, "GPU1": {"value": 0}}}
    more = {"each": {"GPU0": {"value": 5}, "GPU1": {"value": 0}}}
    assert epilog.since(count, more) == {"each": {"GPU0": {"value": 2}, "GPU1": {"value": 0}}}
    assert epilog.since(more, count)["each"]["GPU0"] == {"value": 3}, "it was reset, and counted 3 since"
    links = {"value": {"replay": {"3": 12, "4": 1}}}
    assert epilog.since(links, {"value": {"replay": {"3": 12, "4": 2, "5": 7}}}) == {
        "value": {"replay": {"4": 1, "5": 7}}
    }
    assert epilog.since({"value": [{"xid": 79}]}, {"value": [{"xid": 79}, {"xid": 79}, {"xid": 48}]}) == {
        "value": [{"xid": 79}, {"xid": 48}]
    }
    assert "unread" in epilog.since({"unread": "busy"}, {"value": 3})


@pytest.fixture
def left():
    """left(user): a process of this user that a job left behind."""
    if os.geteuid():
        pytest.skip("starting processes of other users takes root")
    started = []

    def start(user, **environment):
        started.append(subprocess.Popen(["sleep", "60"], user=user, env=environment))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()


def test_a_process_of_the_jobs_user_is_ended(left):
    process = left(NOBODY)
    assert leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), NOBODY)
    assert process.wait(30) == -9


@pytest.mark.parametrize(
    ("owner", "uid", "started_by"), [(0, 0, "7"), (0, NOBODY, "7"), (NOBODY, None, "7"), (NOBODY, NOBODY, "8")]
)
def test_no_process_of_root_or_of_another_job_is_ended(left, owner, uid, started_by):
    process = left(owner, SLURM_JOB_ID=started_by)
    assert not leftover_processes.end(process.pid, Job({"SLURM_JOB_ID": "7"}), uid)
    assert process.poll() is None

"""Many jobs that start on one node at once: each gets a verdict, however long the readings of all of them would take."""

import os

import pytest

from tests.unit.guard import install

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs as root")
JOBS = 12
SLOW = "hang=nvmlDeviceGetCount:2"
"""Such as a busy machine, or a driver with much to do."""


@pytest.mark.parametrize("healthy", [True, False])
def test_all_of_them_get_the_verdict_of_the_node(node, healthy):
    node.write_policy(mode="enforce", reuse_seconds=0, seconds={"total": 40, "step": 20, "stuck": 20})
    node.write_entry(seconds=60)
    node.control(SLOW, *([] if healthy else ["lost@1=1"]))
    started = [node.start(job=str(number), gpus="0,1") for number in range(1, JOBS + 1)]
    ended = [(child.communicate(timeout=install.LATEST)[0], child.returncode) for child in started]
    assert [code for _, code in ended] == [0 if healthy else 1] * JOBS, ended
    assert not any("inconclusive" in said for said, _ in ended), ended


def test_a_job_does_not_get_a_reading_from_before_it_started(node):
    node.write_policy(mode="enforce", reuse_seconds=0, seconds={"total": 40, "step": 20, "stuck": 20})
    assert node.call(job="1").code == 0
    node.control("lost@1=1")
    assert node.call(job="2").code == 1

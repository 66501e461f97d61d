"""`nodetune watch` on a node of a real Slurm, whose jobs are in cgroups of their own."""

import json
import os

import guarded
import lab
import pytest

FREEZER = "/sys/fs/cgroup/freezer"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
    pytest.mark.skipif(
        not os.access(FREEZER, os.W_OK), reason="Slurm's proctrack/cgroup needs the freezer of cgroup v1 here"
    ),
]
ON_GPU0 = """
cd /run/nodetune-nvml/gpu0/processes && touch $$ && exec sleep 600
"""


def test_a_job_that_leaves_its_gpu_idle_is_named_with_its_user(parts, place):
    with guarded.Guarded(parts, nodes=1, proctrack="cgroup") as cluster:
        processes = cluster.of_node("n01") / "run" / "nodetune-nvml" / "gpu0" / "processes"
        processes.mkdir(parents=True)
        processes.chmod(0o777)
        job = cluster.batch("--uid=nobody", "--output=/dev/null", script=ON_GPU0)
        cluster.wait_until(lambda: any(processes.iterdir()), "the job computes on GPU0")
        watching = lab.Running(cluster, place)
        try:
            words = ("watch", "--seconds", "3", "--format", "json")
            _, out, errors = lab.ended(watching.start(*words, within=cluster.inside("n01")), 120)
        finally:
            watching.end()
            cluster.run("scancel", job)
    assert out, errors
    (named,) = json.loads(out)["jobs"]
    assert (named["kind"], named["id"], named["user"]) == ("slurm", job, "nobody")

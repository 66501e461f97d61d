"""slurm_binding in an allocation of a real Slurm: what a job gets where Slurm binds tasks, and where it does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lab
import pytest

TREE = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="it takes two CPUs"),
]


def measured(cluster, **options):
    """The records of one measurement inside an allocation, by metric."""
    words = ["salloc", "--quiet", "--nodes=1", "--exclusive", "srun", "--ntasks=1", "--overlap", "--cpu-bind=none"]
    words += [sys.executable, "-m", "nodetune.measurements", "slurm_binding", json.dumps({"repeats": 1, **options})]
    done = subprocess.run(
        words, env=cluster.environment, cwd=TREE, capture_output=True, text=True, timeout=300, check=False
    )
    return {each.get("metric", ""): each for each in map(json.loads, done.stdout.splitlines())}, done.stderr


def test_a_cluster_that_does_not_bind_lets_tasks_share_all_cpus(place):
    with lab.Cluster(place / "none", task="none") as cluster:
        found, errors = measured(cluster, tasks=2, size=8 << 20)
    assert "samples" in found.get("job", {}), (found, errors)
    assert found["job"]["about"]["shared"] is True
    assert found["job"]["about"]["threads"] == 2
    assert found["job"]["unit"] == "GB/s"


def test_a_cluster_that_binds_gives_each_task_cpus_of_its_own(place):
    with lab.Cluster(place / "affinity", task="affinity", extra="TaskPluginParam=Cores") as cluster:
        found, errors = measured(cluster, tasks=2, size=8 << 20)
    assert set(found) == {"job", "bound", "unbound"}, errors
    for metric, shared in (("job", False), ("bound", False), ("unbound", True)):
        assert "samples" in found[metric], (found[metric], errors)
        assert found[metric]["about"]["shared"] is shared, metric


def test_outside_of_an_allocation_it_is_skipped():
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_JOB_ID"}
    words = [sys.executable, "-m", "nodetune.measurements", "slurm_binding"]
    done = subprocess.run(words, env=environment, cwd=TREE, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["skip"].startswith("an allocation of this node is needed")

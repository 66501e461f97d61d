"""What the tasks of a Slurm step tell, and what is no figure. A real Slurm: tests/integration/slurm/test_slurm_binding.py."""

import json
import os
import subprocess
import sys
import time

import pytest

from nodetune.measurements import slurm_binding
from nodetune.measurements.host import report as reporting


def task(rate=5.0, late=-1.0, cpus=(0,)):
    return json.dumps({"rate": rate, "late": late, "cpus": list(cpus)}) + "\n"


def test_tasks_that_may_use_the_same_cpu_share_it():
    apart = slurm_binding.read(task(cpus=[0, 1]) + task(cpus=[2]), 2)
    assert slurm_binding.binding(apart) == {"cpus_a_task": 2, "shared": False}
    same = slurm_binding.read(task(cpus=[0, 1]) + "a word of a plugin\n" + task(cpus=[1, 2]), 2)
    assert slurm_binding.binding(same) == {"cpus_a_task": 2, "shared": True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (task(), "1 of 2 tasks reported a usable result"),
        (task() + task(late=2.5), "a task began 2.5 s after the others: the node is busy"),
        (task() + task(rate=0), "1 of 2 tasks reported a usable result"),
        (task() + '{"rate": "x"}\n', "unexpected output of the tasks"),
        ("{broken\n", "unexpected output of the tasks"),
        ("", "0 of 2 tasks reported a usable result"),
    ],
)
def test_what_is_no_figure_is_told(text, says):
    with pytest.raises(reporting.MeasurementError, match=says):
        slurm_binding.read(text, 2)


def test_a_task_copies_memory_and_tells_where_it_may_run():
    words = [sys.executable, "-I", "-S", "-c", slurm_binding.TASK, str(1 << 20), str(time.time() + 0.5), "0.1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["rate"] > 0.01
    assert set(told["cpus"]) == os.sched_getaffinity(0)


def test_what_srun_set_for_this_step_does_not_bind_the_next(monkeypatch):
    seen = []
    monkeypatch.setattr(slurm_binding.external_tool, "run", lambda words, seconds: seen.append(words) or task())
    monkeypatch.delenv("SLURM_CONF", raising=False)
    for name in ("SLURM_JOB_ID", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE", "SLURM_NTASKS"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("SLURMD_NODENAME", "n07")
    slurm_binding.step("/usr/bin/srun", (1, 4), ("--cpu-bind=cores",), 1 << 20)
    (words,) = seen
    assert words[1] == "-i"
    kept = {word.partition("=")[0] for word in words if word.startswith("SLURM_")}
    assert kept == {"SLURM_JOB_ID"}
    assert {"--overlap", "--ntasks=1", "--cpus-per-task=4", "--cpu-bind=cores", "--nodelist=n07"} <= set(words)

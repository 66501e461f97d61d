"""Faults of anything but a GPU hold no job, and every broken GPU does: a sample, or NODETUNE_FAULTY_RUNS runs."""

import os

import pytest

from tests.support import nvml_substitute
from tests.unit.guard import faults

RUNS = int(os.environ.get("NODETUNE_FAULTY_RUNS", "40"))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs and epilogs as root")
@pytest.mark.skipif(bool(nvml_substitute.compiler_missing()), reason=nvml_substitute.compiler_missing())
def test_no_fault_holds_a_job_and_every_broken_gpu_does():
    # whether a run keeps its promised time on a busy machine says nothing: python -m tests.unit.guard.faults judges that
    found = faults.runs(RUNS, RUNS // 10, seed=1, workers=2, timely=False)
    assert faults.report(found) == []

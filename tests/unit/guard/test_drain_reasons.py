"""A drain that Slurm made for a held job gets the guard's reason: once, and for that job."""

import json
import os
import time

import pytest

from nodetune.guard.node import drain, records, scontrol

LOST = "nodetune: gpu-lost: GPU0: NVML: GPU is lost"


class Slurm:
    """A node that Slurm drained just now, and the reasons that it gets."""

    def __init__(self):
        self.reasons = []

    def node(self, name):
        now = time.strftime("%Y-%m-%dT%H:%M:%S")
        return scontrol.SlurmNode(f"NodeName={name} State=IDLE+DRAIN Reason=Prolog error [slurm@{now}]")

    def give_reason(self, name, reason):
        self.reasons.append((name, reason))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(drain, "KEPT", str(tmp_path / "kept"))
    records.prepare(str(tmp_path / "run"))
    return str(tmp_path / "run")


def held(run, job, written_ns):
    """Put a failure of this second on record, in a file of that time."""
    record = {"job": job, "node": "n01", "reason": LOST, "findings": [{"check": "gpu-lost"}]}
    records.keep(run, job, json.dumps({**record, "boot": records.boot_id(), "time": int(time.time())}))
    path = os.path.join(run, records.FAILED, f"{job}.json")
    os.utime(path, ns=(written_ns, written_ns))


def mark(run):
    return os.stat(os.path.join(run, drain.EXPLAINED)).st_mtime_ns


def test_a_drain_gets_its_reason_once(run):
    there = Slurm()
    held(run, "7", time.time_ns())
    assert "the drain of job 7 is ours" in drain.give_reasons(there, run, "n01")
    assert there.reasons == [("n01", LOST)]
    assert drain.give_reasons(there, run, "n01") == "", "another prolog's drain is not ours"
    assert len(there.reasons) == 1


def test_a_job_that_is_held_in_the_second_of_the_last_reason_has_its_own(run):
    there = Slurm()
    held(run, "7", time.time_ns())
    drain.give_reasons(there, run, "n01")
    held(run, "8", mark(run) + 1)
    assert "the drain of job 8 is ours" in drain.give_reasons(there, run, "n01")
    assert len(there.reasons) == 2

"""Hosts on which the real measurements find no driver, an old one, another one, or no NCCL: the words, and no exit code 0."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune.facts.machine import Machine
from nodetune.foundation.exit_codes import INCOMPLETE
from nodetune.verify import figures
from nodetune.verify.exit_code import exit_code
from nodetune.verify.model import FAILED, SKIP, Figure, Verdict
from nodetune.verify.run import HostVerification

ROOT = Path(__file__).parents[3]
WHOLE = Verdict(Figure("gpu1", "memory", "local", "node0", ((100.0,),), "GB/s"), "pass")


def measured(name, **options):
    """What is left unmeasured by a measurement of its own process here."""
    words = [sys.executable, "-m", "nodetune.measurements", name, json.dumps(options)]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    records = [figures.read("gpu1", json.loads(line)) for line in found.stdout.splitlines()]
    return [each for each in records if not isinstance(each, Figure)]


def code(unmeasured):
    machine = Machine(model="NVIDIA H200", gpus=2, pci_gpus=2)
    return exit_code([HostVerification("gpu1", machine=machine, verdicts=(WHOLE,), unmeasured=tuple(unmeasured))])


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia/version"), reason="this machine has the driver")
@pytest.mark.parametrize(("name", "package"), [("gemm", "NVIDIA driver"), ("nccl", "libnccl2")])
def test_without_the_driver_or_nccl_it_is_incomplete(name, package):
    (found,) = measured(name)
    assert (found.status, package in found.reason) == (SKIP, True), found
    assert code([found]) == INCOMPLETE


def test_a_driver_that_is_too_old_is_named(tmp_path):
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-o", library, "-x", "c", os.devnull], check=True)
    (found,) = measured("gpu_memory", libcuda=str(library))
    assert found.status == FAILED
    assert "the driver is too old for these measurements" in found.reason
    assert code([found]) == INCOMPLETE


def test_a_library_of_another_driver_is_named(libcuda, monkeypatch):
    monkeypatch.setenv("STAND_IN_FAULT", "mismatch")
    (found,) = measured("gpu_memory", libcuda=libcuda)
    assert found.status == FAILED
    assert "reboot, or reload the module" in found.reason
    assert code([found]) == INCOMPLETE

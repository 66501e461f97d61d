"""What tests of several rooms need."""

import os
import shlex
import subprocess
import sys

import pytest


@pytest.fixture
def full_disk(tmp_path):
    """Runs nodetune in a folder on a disk of a given size: (how it ended, the files that are left there)."""
    if os.geteuid():
        pytest.skip("mounting a disk takes root")

    def run(size, *words):
        command = shlex.join([sys.executable, "-m", "nodetune", *words])
        script = f"mount -t tmpfs -o size={size} none {tmp_path} && cd {tmp_path} && {command}; code=$?; find . -type f; exit $code"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
        return done, done.stdout.splitlines()

    return run

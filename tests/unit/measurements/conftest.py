"""A substitute libcuda for the GPU measurements."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "support/cuda/stand_in.c"


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory):
    """The substitute, built."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc here: apt install gcc")
    path = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["gcc", *flags, SOURCE, "-o", path], check=True)
    return str(path)

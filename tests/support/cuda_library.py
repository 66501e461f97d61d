"""A folder with the substitute libcuda (tests/support/cuda), also as libcublasLt, for LD_LIBRARY_PATH."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "cuda" / "stand_in.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]


def built(folder):
    """Build it there. Return the folder."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc here: apt install gcc")
    path = folder / "libcuda.so.1"
    subprocess.run(["gcc", *FLAGS, SOURCE, "-o", path], check=True)
    (folder / "libcublasLt.so.12").symlink_to(path.name)
    return folder

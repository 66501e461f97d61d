"""The substitute for NVML of tests/machines/nvml, built once for all tests that load it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pynvml

from tests.machines import image, place
from tests.support.packages import kept


def library():
    """The folder that has it; leave it as it is: it is shared."""
    return kept.folder("nvml", place.digest(image.NVML, image.RECORDING, Path(pynvml.__file__)), _build)


def copied(folder):
    """A folder of one's own that has it, which any user may read."""
    shutil.copytree(library(), folder, dirs_exist_ok=True)
    folder.chmod(0o755)
    return folder


def _build(folder):
    command = ["make", "-s", "-C", image.NVML, f"OUT={folder}", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def compiler_missing():
    return "" if shutil.which("gcc") and shutil.which("make") else "no gcc or no make here"

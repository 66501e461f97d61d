"""What is inside the packages: libraries that are compiled here, kernel modules, and the texts of files/."""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.machines.image import NVML, run
from tests.support.packages.data import BAD, HERE, Package

FILES = HERE / "files"
BUILT_FOR = "580.159.04"
"""The version that tests/machines/nvml carries; all others have as many characters, and are written over it."""
MODULE_FOR = "000.000.00"
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread")


def content(package: Package, source: str) -> bytes:
    """The bytes of a file of a package: `built:NAME`, or the text files/NAME with its @NAMES@ filled in."""
    kind, _, name = source.rpartition(":")
    if kind == "built":
        made = _libcuda(slow=package.driver == BAD) if name == "libcuda" else _nvml(name)
        return made.replace(BUILT_FOR.encode(), package.driver.encode())
    told = NVML / name if name == "nvidia-persistenced.service" else FILES / name
    return filled(package, told.read_text()).encode()


def filled(package: Package, text: str) -> str:
    branch = package.driver.partition(".")[0]
    values = {"DRIVER": package.driver, "BRANCH": branch, "UNITS": " ".join(package.units)}
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def module(package: Package, file: Path) -> bytes:
    """A kernel module with the version of a package."""
    return file.read_bytes().replace(MODULE_FOR.encode(), package.driver.encode())


@functools.cache
def _libcuda(*, slow: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "libcuda.so.1"
        run("gcc", *FLAGS, *(["-DSLOW"] if slow else []), "-Wl,-soname,libcuda.so.1", FILES / "libcuda.c", "-o", made)
        return made.read_bytes()


@functools.cache
def _nvml(name: str) -> bytes:
    """The library of tests/machines/nvml, made to mind the kernel module, or the daemon next to it."""
    file = {"libnvidia-ml": "libnvidia-ml.so.1"}.get(name, name)
    minding = f"CFLAGS=-O2 -Wl,--wrap=control {FILES}/nvml_module.c" if name == "libnvidia-ml" else "CFLAGS=-O2"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / file
        run("make", "-s", "-C", NVML, f"OUT={folder}", f"PYTHON={sys.executable}", minding, made)
        return made.read_bytes()


def compiler_missing() -> bool:
    return subprocess.run(["sh", "-c", "command -v gcc make"], stdout=subprocess.DEVNULL).returncode != 0

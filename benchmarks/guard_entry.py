"""Measures what the guard costs each job, beside what else could run there: wall and CPU time, medians of TIMES runs in turn. The
stand-in NVML of eight GPUs is built unless --nvml names a folder with libnvidia-ml.so.1, or `real` for the host's."""

import importlib.util
import shutil
import statistics
import tempfile
from pathlib import Path

import click

from benchmarks.support.measuring import COUNT, UnavailableError, benchmark, cost
from tests.unit.guard import install

BARE = ("-I", "-S", "-B", "-c")
READS = """
import sys
sys.path.insert(0, {package!r})
import ctypes
import pynvml as n
n.nvmlInit()
for index in range(n.nvmlDeviceGetCount()):
    gpu = n.nvmlDeviceGetHandleByIndex(index)
    n.nvmlDeviceGetPciInfo(gpu)
    for call in (n.nvmlDeviceGetMinorNumber, n.nvmlDeviceGetRemappedRows):
        try:
            call(gpu)
        except n.NVMLError:
            pass
    n.nvmlDeviceGetTemperature(gpu, 0)
    n.nvmlDeviceGetFieldValues(gpu, [230])
    try:
        info = n.c_nvmlEccSramErrorStatus_v1_t()
        n.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(info))
    except (n.NVMLError, AttributeError):
        pass
n.nvmlShutdown()
"""


PYNVML = Path(importlib.util.find_spec("pynvml").origin).parent
ENTRY, CACHED, BARE_READS = "the entry, all GPUs", "the entry, a pass that counts", "bare pynvml, the same reads"


def cases(folder, program, nvml):
    """Name → (what to do before, command, environment)."""
    bare, gpus = install.Node(folder / "bare", program), install.Node(folder / "gpus", program, nvml)
    eight = gpus.environment(gpus=",".join(map(str, range(8))) if nvml else "0")
    python = [install.PYTHON, *BARE]
    found = {
        "python3 -I -S -c pass": (None, [*python, "pass"], {}),
        CACHED: (gpus.call, ["/bin/sh", gpus.prolog], eight),
        "the entry, a job without GPUs": (bare.forget, ["/bin/sh", bare.prolog], bare.environment(gpus=None)),
        "the entry, a node without GPUs": (bare.forget, ["/bin/sh", bare.prolog], bare.environment(gpus="0")),
        ENTRY: (gpus.forget, ["/bin/sh", gpus.prolog], eight),
        BARE_READS: (None, [*python, READS.format(package=str(PYNVML))], eight),
    }
    if smi := shutil.which("nvidia-smi"):
        found["nvidia-smi"] = (None, [smi], None)
    return found


@benchmark(__doc__, times=1)
@click.argument("times", default=25, type=COUNT)
@click.option("--nvml", default="", metavar="FOLDER")
def main(times, nvml):
    real = nvml == "real"
    if real and not shutil.which("nvidia-smi"):
        raise UnavailableError("no NVIDIA driver on this machine")
    if not nvml and not install.can_build():
        raise UnavailableError("no compiler for the stand-in NVML: apt install gcc make")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = None if real else Path(nvml) if nvml else install.stand_in(folder / "nvml")
        compared = cases(folder, install.program(folder / "program"), library)
        taken = {label: [] for label in compared}
        for _ in range(times):
            for label, (before, command, environment) in compared.items():
                if before:
                    before()
                taken[label].append(cost(command, environment, expected=range(256)))
    return {"guard_entry_gpus" if real else "guard_entry": show(taken)}


def show(taken):
    """Print the medians, and return the figure."""
    print(f"{'':32} {'wall':>9} {'lowest':>9} {'CPU':>9}")
    for label, runs in taken.items():
        cpu, wall, _ = map(statistics.median, zip(*runs, strict=True))
        lowest = min(each.wall for each in runs)
        print(f"{label:32} {wall * 1000:6.0f} ms {lowest * 1000:6.0f} ms {cpu * 1000:6.0f} ms")
    wanted = [ENTRY, BARE_READS, CACHED, *(["nvidia-smi"] if "nvidia-smi" in taken else [])]
    walls = [f"{statistics.median(each.wall for each in taken[label]) * 1000:.0f} ms" for label in wanted]
    return "; ".join([f"{walls[0]}, {walls[1]}", *walls[2:]])


if __name__ == "__main__":
    main()

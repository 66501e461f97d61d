"""What the guard costs each job, beside what else could be run there: wall and CPU time, and ratios, in one run.

    python benchmarks/prolog.py [TIMES] [--nvml FOLDER]

The stand-in NVML of eight GPUs is built unless NVML is given: a folder with libnvidia-ml.so.1, or `real` for the host's.
Every line is the median of TIMES runs (default 25), taken in turn so that a busy machine slows all alike.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.guard import install

BARE = ("-I", "-S", "-B", "-c")
BASH = """#!/bin/bash
# A health check as sites write them: the same questions, asked of nvidia-smi.
count=$(nvidia-smi -L | wc -l)
[ "$count" -ge 1 ] || exit 1
nvidia-smi --query-gpu=index,pci.bus_id,temperature.gpu,ecc.errors.uncorrected.volatile.total \\
    --format=csv,noheader > /dev/null || exit 1
nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.failure --format=csv,noheader | grep -q ', Yes' && exit 1
lsmod | grep -q '^nouveau' && exit 1
exit 0
"""
BASH_WITHOUT_SMI = """#!/bin/bash
# A health check as sites write them, as far as it goes without nvidia-smi: processes for each question.
[ "$(ls /sys/bus/pci/devices | wc -l)" -ge 1 ] || exit 1
lsmod 2> /dev/null | grep -q '^nouveau' && exit 1
grep -q '^MemTotal' /proc/meminfo || exit 1
dmesg 2> /dev/null | grep -qE 'NVRM: Xid.*: (48|63|64|74|79|94|95)' && exit 1
df -P / | awk 'NR == 2 { exit $5 + 0 > 99 }' || exit 1
exit 0
"""
READS = """
import sys
sys.path.insert(0, {program!r})
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


def timed(command, environment):
    """Wall and CPU seconds of a command and all that it waited for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cases(folder, program, nvml):
    """Name → (what to do before, command, environment)."""
    bare, gpus = install.Node(folder / "bare", program), install.Node(folder / "gpus", program, nvml)
    plain = install.Node(folder / "plain", program, nvml, snapshot=[])
    without, eight = bare.environment(gpus="0"), gpus.environment(gpus=",".join(map(str, range(8))))
    if nvml is None:
        eight = gpus.environment(gpus="0")
    health = folder / "health.sh"
    health.write_text(BASH if install.shutil.which("nvidia-smi") else BASH_WITHOUT_SMI)
    python = [install.PYTHON, *BARE]
    found = {
        "python3 -I -S -c pass": (None, [*python, "pass"], {}),
        "the entry, a pass that counts": (gpus.call, ["/bin/sh", gpus.prolog], eight),
        "the entry, a job without GPUs, read anew": (
            bare.forget,
            ["/bin/sh", bare.prolog],
            bare.environment(gpus=None),
        ),
        "the entry, a node without GPUs": (bare.forget, ["/bin/sh", bare.prolog], without),
        "the entry, all GPUs": (gpus.forget, ["/bin/sh", gpus.prolog], eight),
        "the entry, all GPUs, nothing for the epilog": (plain.forget, ["/bin/sh", plain.prolog], eight),
        "bare pynvml, the same reads": (None, [*python, READS.format(program=str(program))], eight),
        "a health check in bash": (None, ["/bin/bash", health], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}),
    }
    if install.shutil.which("nvidia-smi"):
        found["nvidia-smi"] = (None, [install.shutil.which("nvidia-smi")], dict(os.environ))
    return found


def main(arguments):
    times = int(arguments[0]) if arguments and arguments[0].isdigit() else 25
    given = arguments[arguments.index("--nvml") + 1] if "--nvml" in arguments else ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nvml = None if given == "real" else Path(given) if given else install.stand_in(folder / "nvml")
        compared = cases(folder, install.program(folder / "program"), nvml)
        taken = {label: [] for label in compared}
        for _ in range(times):
            for label, (before, command, environment) in compared.items():
                if before:
                    before()
                taken[label].append(timed(command, environment))
    show(taken)


def show(taken):
    base = statistics.median(wall for wall, _ in taken["python3 -I -S -c pass"])
    print(f"{'':44} {'wall':>9} {'lowest':>9} {'CPU':>9} {'x python':>9}")
    for label, runs in taken.items():
        wall, cpu = (statistics.median(each[at] for each in runs) for at in (0, 1))
        lowest = min(each[0] for each in runs)
        print(f"{label:44} {wall * 1000:6.0f} ms {lowest * 1000:6.0f} ms {cpu * 1000:6.0f} ms {wall / base:8.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""A GPU's memory is in use although no program is on it.

Why it matters: A program that ended badly, or hangs in the driver after it was killed, may keep its memory: the next job runs
out of memory on a GPU that looks free. Memory that programs of another node map (IMEX) is kept as well, until they end.
Confirm manually: nvidia-smi --query-gpu=index,memory.used --format=csv; nvidia-smi pmon -c 1; fuser -v /dev/nvidia*
Side effects of the fix: Ending a process loses its work; a GPU reset ends every program on the GPU.
Sources: https://github.com/facebookresearch/gcm (check_nvidia_smi, gpu_mem_usage: 15 MiB beyond the driver's) ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html (nvmlDeviceGetComputeRunningProcesses)
"""

from nodetune.api import GPU, NOT_CONTAINER, AtMost, Check, FactsView, manual
from nodetune.checks.gpu.gpu_busy_without_program import LEFT_BY_DRIVER

GIB = 1 << 30


def observe(facts: FactsView) -> dict[str, float]:
    """Return GiB. Programs in a MIG instance or a virtual machine are not listed."""
    total, mig = facts["gpu.memory_total"], facts.get("gpu.mig_mode", {})
    mode = facts.get("gpu.virtualization_mode", {})
    return {
        gpu: round(held / GIB, 1) if held * 100 > LEFT_BY_DRIVER * total[gpu] else 0.0
        for gpu, held in facts["gpu.memory_without_program"].items()
        if gpu in total and mig.get(gpu) != "enabled" and not mode.get(gpu, "").startswith("host_")
    }


CHECK = Check(
    needs=("gpu.memory_without_program", "gpu.memory_total", "gpu.mig_mode", "gpu.virtualization_mode"),
    observe=observe,
    accept=AtMost(1),
    unit="GiB",
    applies=(NOT_CONTAINER, GPU),
    remedy=manual(
        "fuser -v /dev/nvidia* names processes that still have the GPU open: end those that no job owns. If there is none, drain the "
        "node and reset the GPU (nvidia-smi -r -i INDEX; all GPUs together on NVSwitch systems before Hopper)."
    ),
    severity="medium",
)

"""A GPU reports full load although no program is on it.

Why it matters: A program that is killed while its kernel runs may leave the GPU at 100 % with no memory in use and no
process, for days. Schedulers and monitoring that go by the utilization take it for busy. Reports disagree on whether
the GPU still computes at full speed.
Confirm manually: nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv; nvidia-smi pmon -c 1
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://github.com/Datura-ai/lium-io/pull/1140 ; https://github.com/Datura-ai/lium-io/pull/1142 ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html (nvmlDeviceGetUtilizationRates)
"""

from nodetune.api import GPU, NOT_CONTAINER, AtMost, Check, FactsView, manual

LEFT_BY_DRIVER = 3
"""Memory in percent that the driver keeps for itself. Without persistence mode, the load is that of starting the GPU."""


def observe(facts: FactsView) -> dict[str, int]:
    used, total = facts["gpu.memory_used"], facts["gpu.memory_total"]
    kept, mode = facts["gpu.persistence_mode"], facts.get("gpu.virtualization_mode", {})
    return {
        gpu: load
        for gpu, load in facts["gpu.load_without_program"].items()
        if kept.get(gpu) == "enabled"
        and not mode.get(gpu, "").startswith("host_")
        and gpu in used
        and used[gpu] * 100 <= LEFT_BY_DRIVER * total[gpu]
    }


CHECK = Check(
    needs=(
        "gpu.load_without_program",
        "gpu.memory_used",
        "gpu.memory_total",
        "gpu.persistence_mode",
        "gpu.virtualization_mode",
    ),
    observe=observe,
    accept=AtMost(94),
    unit="% load",
    applies=(NOT_CONTAINER, GPU),
    remedy=manual(
        "Run a short CUDA program on the GPU that ends by itself: on Blackwell that was seen to clear it. If the load stays, "
        "drain the node and reset the GPU (nvidia-smi -r -i INDEX; all GPUs together on NVSwitch systems before Hopper)."
    ),
    severity="medium",
)

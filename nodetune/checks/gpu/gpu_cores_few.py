"""A GPU has fewer cores than its model should have.

Why it matters: Part of the GPU is switched off, or the board is not the one that was bought. Every step of a job waits for
its slowest GPU. NVML counts the CUDA cores of all streaming multiprocessors (132 of them with 128 each on an H100 SXM).
Healthy exception: A vGPU, or a GPU that MIG divides, may show only a part of its model.
Confirm manually: nvidia-smi --query-gpu=index,name,pci.device_id --format=csv, then deviceQuery of the CUDA samples
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/cuda/hopper-tuning-guide/index.html ; https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper
"""

from __future__ import annotations

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, repair
from nodetune.checks.shared.gpu_peers import MODELS, models


def observe(facts: FactsView) -> dict[str, str]:
    model_of, virtual = models(facts), facts.get("gpu.virtualization_mode", {})
    divided = facts.get("gpu.mig_mode", {})
    found = {}
    for name, cores in facts["gpu.cores"].items():
        wanted = data.gpu(model_of.get(name, "")).get("cores", 0)
        if wanted and virtual.get(name) != "vgpu" and divided.get(name) != "enabled":
            found[name] = f"{cores} of {wanted}" if cores < wanted else ""
    return found


CHECK = Check(
    needs=("gpu.cores", *MODELS, "gpu.virtualization_mode", "gpu.mig_mode"),
    observe=observe,
    accept=Empty("the cores of its model"),
    applies=(GPU,),
    remedy=repair(
        "Compare the part number of the board with the order. Power the host off and on, then ask the vendor."
    ),
    severity="medium",
)

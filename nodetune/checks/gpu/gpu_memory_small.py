"""A GPU has less memory than its model should have.

Why it matters: The GPU gave up part of its memory after errors, or it is not the expected model. Jobs sized for the
model run out of memory. A tolerance of two per cent covers the memory that drivers reserve.
Healthy exception: A vGPU has only a part of the memory of its model.
Confirm manually: nvidia-smi --query-gpu=index,name,memory.total --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, repair
from nodetune.checks.shared.gpu_peers import MODELS, models
from nodetune.foundation import text

MIB = 1 << 20
TOLERANCE = 0.98


def observe(facts: FactsView) -> dict[str, str]:
    model_of, modes = models(facts), facts.get("gpu.virtualization_mode", {})
    found = {}
    for name, total in facts["gpu.memory_total"].items():
        wanted = data.gpu(model_of.get(name, "")).get("memory_mib", 0) * MIB
        if wanted and modes.get(name) != "vgpu":
            found[name] = f"{text.size(total)} of {text.size(wanted)}" if total < wanted * TOLERANCE else ""
    return found


CHECK = Check(
    needs=("gpu.memory_total", *MODELS, "gpu.virtualization_mode"),
    observe=observe,
    accept=Empty("the memory of its model"),
    applies=(GPU,),
    remedy=repair(
        "Read dmesg for Xid 168 (reduced memory) and nvidia-smi -q -d ECC. Reset the GPU, then ask the vendor."
    ),
    severity="high",
)

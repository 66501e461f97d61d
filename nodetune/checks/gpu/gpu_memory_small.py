"""A GPU shows less memory than its model has.

Why it matters: Part of its memory was given up after errors, or the GPU is not the model that it should be: jobs sized
for the model run out of memory. Two per cent of tolerance cover what drivers reserve.
Confirm by hand: nvidia-smi --query-gpu=index,name,memory.total --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data, show
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

MIB = 1 << 20
TOLERANCE = 0.98


def observe(facts: View) -> dict[str, str]:
    models, modes = facts["gpu.pci_device_id"], facts.get("gpu.virtualization_mode", {})
    found = {}
    for name, total in facts["gpu.memory_total"].items():
        wanted = data.gpu(models.get(name, "")).get("memory_mib", 0) * MIB
        if wanted and modes.get(name) != "vgpu":
            found[name] = f"{show.size(total)} of {show.size(wanted)}" if total < wanted * TOLERANCE else ""
    return found


CHECK = Check(
    needs=("gpu.memory_total", "gpu.pci_device_id", "gpu.virtualization_mode"),
    observe=observe,
    accept=Empty("the memory of its model"),
    applies=(GPU,),
    remedy=manual(
        "Read dmesg for Xid 168 (reduced memory) and nvidia-smi -q -d ECC; reset the GPU; then ask the vendor."
    ),
    severity="high",
)

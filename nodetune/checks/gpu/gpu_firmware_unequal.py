"""GPUs of one model have different firmware.

Why it matters: Different VBIOS or InfoROM versions can mean other clocks, power tables and fixes: GPUs that should be
alike are not. Often one was replaced and never brought to the level of the others.
Confirm by hand: nvidia-smi --query-gpu=index,vbios_version,inforom.img --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.checks.gpu._siblings import outliers
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    images = facts.get("gpu.inforom_image_version", {})
    levels = {
        name: f"VBIOS {vbios}, InfoROM {images.get(name, 'none')}" for name, vbios in facts["gpu.vbios_version"].items()
    }
    return {
        name: "" if common is None else f"{levels[name]}; its siblings {common}"
        for name, common in outliers(levels, facts["gpu.names"]).items()
    }


CHECK = Check(
    needs=("gpu.vbios_version", "gpu.inforom_image_version", "gpu.names"),
    observe=observe,
    accept=Empty("the firmware of its siblings"),
    applies=(GPU,),
    remedy=manual(
        "Bring the GPU to the level of the others with the server vendor's firmware bundle, on a drained node."
    ),
    severity="medium",
)

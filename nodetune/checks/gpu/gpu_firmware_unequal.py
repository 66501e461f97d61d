"""GPUs of the same model run different firmware.

Why it matters: Other VBIOS or InfoROM versions can bring other clocks, power tables and fixes, so GPUs that should be
identical are not. Often a GPU was replaced and never updated to the level of the others.
Confirm manually: nvidia-smi --query-gpu=index,vbios_version,inforom.img --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import outliers


def observe(facts: FactsView) -> dict[str, str]:
    images = facts.get("gpu.inforom_image_version", {})
    levels = {
        name: f"VBIOS {vbios}, InfoROM {images.get(name, 'none')}" for name, vbios in facts["gpu.vbios_version"].items()
    }
    return {
        name: "" if common is None else f"{levels[name]}; its peers {common}"
        for name, common in outliers(levels, facts["gpu.names"]).items()
    }


CHECK = Check(
    needs=("gpu.vbios_version", "gpu.inforom_image_version", "gpu.names"),
    observe=observe,
    accept=Empty("the firmware of its peers"),
    applies=(GPU,),
    remedy=manual(
        "Update the GPU to the level of the others with the server vendor's firmware bundle, on a drained node."
    ),
    severity="medium",
)

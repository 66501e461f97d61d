"""The driver is too old for a GPU model or for its MIG mode.

Why it matters: NVIDIA publishes a minimum driver version for some models, and for MIG on each model. With an older
driver, the GPU may work only in part, or the driver may refuse MIG instances.
Healthy exception: No minimum is published for some models. The driver of Windows, which WSL uses, has versions of its own.
Confirm manually: nvidia-smi --query-gpu=name,driver_version --format=csv
Side effects of the fix: A new driver requires all GPU programs to end, and usually a reboot. Fabric Manager must move
to the same version.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/620/deployment-considerations.html ;
https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html (HGX B200)
"""

from nodetune import data
from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu import _windows
from nodetune.checks.shared.gpu_peers import MODELS, models


def observe(facts: FactsView) -> dict[str, str]:
    _windows.only_linux(facts)
    driver, mig = facts["gpu.driver_version"], facts.get("gpu.mig_mode", {})
    return {gpu: _problem(driver, device, mig.get(gpu) == "enabled") for gpu, device in models(facts).items()}


def _problem(driver: str, device: str, mig: bool) -> str:
    model = data.gpu(device)
    wanted = [(model.get("minimum_driver"), "")]
    if mig:
        wanted.append((model.get("mig_minimum_driver"), " for MIG"))
    for minimum, why in wanted:
        if minimum and data.version(driver) < data.version(minimum):
            return f"{driver}: {model['name']} needs {minimum}{why}"
    return ""


CHECK = Check(
    needs=(*MODELS, "gpu.driver_version", "gpu.mig_mode", _windows.KERNEL),
    observe=observe,
    accept=Empty("at least the version that the model needs"),
    applies=(GPU,),
    remedy=manual(
        "Install a current driver of a supported branch, with the Fabric Manager of the same version, and reboot."
    ),
    severity="high",
)

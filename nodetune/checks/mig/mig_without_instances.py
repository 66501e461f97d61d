"""A GPU in MIG mode has no instance: nobody can use it.

Why it matters: The mode is on and no instance was made, usually after a reboot or a reset: instances are not kept.
Programs see no GPU at all.
Confirm by hand: nvidia-smi -L
Side effects of the fix: None: the GPU cannot be in use.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://github.com/NVIDIA/mig-parted/tree/main/deployments/systemd
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    devices = facts["gpu.mig_devices"]
    return {
        name: sum(devices[name].values())
        for name, mode in facts["gpu.mig_mode"].items()
        if mode == "enabled" and name in devices
    }


CHECK = Check(
    needs=("gpu.mig_mode", "gpu.mig_devices"),
    observe=observe,
    accept=AtLeast(1),
    unit="MIG devices",
    applies=(GPU,),
    remedy=manual(
        "Make the instances (nvidia-mig-parted apply -f CONFIG -c NAME, or nvidia-smi mig -i INDEX -cgi PROFILES -C) and enable "
        "nvidia-mig-manager.service so that they come back at boot; or switch MIG off: nvidia-smi -i INDEX -mig 0."
    ),
    severity="high",
)

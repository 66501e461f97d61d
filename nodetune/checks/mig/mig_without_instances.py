"""A GPU in MIG mode has no MIG instance.

Why it matters: MIG mode is on but no instance exists, usually after a reboot or a reset: instances do not survive
either. Programs find no GPU at all.
Healthy exception: A GPU outside MIG mode has no instances.
Confirm manually: nvidia-smi -L
Side effects of the fix: None. The GPU cannot be in use.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://github.com/NVIDIA/mig-parted/tree/main/deployments/systemd
"""

from nodetune.api import GPU, AtLeast, Check, FactsView, repair


def observe(facts: FactsView) -> dict[str, int]:
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
    remedy=repair(
        "Make the instances (nvidia-mig-parted apply -f CONFIG -c NAME, or nvidia-smi mig -i INDEX -cgi PROFILES -C) and enable "
        "nvidia-mig-manager.service to recreate them at boot. Or turn MIG off: nvidia-smi -i INDEX -mig 0."
    ),
    severity="high",
)

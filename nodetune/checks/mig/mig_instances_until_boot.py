"""MIG instances exist that nothing makes at the next boot.

Why it matters: MIG instances end with a reset and with each boot. Made manually, they are gone after the next one: programs find
no GPU, and the scheduler still offers the instances. A kubelet's node is left to the MIG manager of its cluster.
Confirm manually: nvidia-smi -L; systemctl status nvidia-mig-manager
Side effects of the fix: None until the boot.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://github.com/NVIDIA/mig-parted/tree/main/deployments/systemd
"""

from nodetune.api import (
    GPU_ON_PCI,
    NOT_CONTAINER,
    SYSTEMD,
    Check,
    Empty,
    Equals,
    FactAbsentError,
    FactsView,
    When,
    manual,
)
from nodetune.checks.shared import kept_at_boot

UNIT, LAYOUT = "nvidia-mig-manager", "mig_devices"


def observe(facts: FactsView) -> dict[str, str]:
    modes = facts["gpu.mig_mode"]
    divided = [name for name, devices in facts["gpu.mig_devices"].items() if devices and modes.get(name) == "enabled"]
    if not divided:
        raise FactAbsentError("no GPU has MIG instances")
    kept = kept_at_boot.kept_by(facts, LAYOUT, UNIT)
    return dict.fromkeys(divided, "" if kept else "instances until the next boot")


CHECK = Check(
    needs=("gpu.mig_mode", "gpu.mig_devices", *kept_at_boot.needs(LAYOUT, UNIT)),
    observe=observe,
    accept=Empty("instances that something makes at each boot"),
    applies=(
        GPU_ON_PCI,
        NOT_CONTAINER,
        SYSTEMD,
        When("kubernetes.present", Equals(wanted=False), "the MIG manager of a cluster may make them"),
    ),
    remedy=manual(
        "Write the layout down: nvidia-mig-parted export > /etc/nvidia-mig-manager/config.yaml, and systemctl enable "
        "nvidia-mig-manager. Or state it in the site file (mig-layout-unwanted): nodetune then keeps it."
    ),
    severity="medium",
    name="MIG layout",
)

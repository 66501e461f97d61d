"""The version of Fabric Manager differs from the driver's.

Why it matters: Fabric Manager works only with a driver of exactly its own version; otherwise it exits at start. The
usual cause is an update of only one of the two packages. The node then breaks at the next boot.
Healthy exception: A host without NVSwitches does not use the Fabric Manager that is installed.
Does not gate: The fabric that runs now works until the next boot.
Confirm manually: nv-fabricmanager --version; cat /proc/driver/nvidia/version
Side effects of the fix: Needs idle GPUs: the driver or Fabric Manager is replaced and restarted.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from nodetune.api import NOT_CONTAINER, Check, Equals, FactsView, Ref, repair
from nodetune.checks.services._units import NVSWITCH_NEEDS, require_nvswitch


def observe(facts: FactsView) -> str:
    require_nvswitch(facts)
    return str(facts["services.fabricmanager_version"])


CHECK = Check(
    needs=("services.fabricmanager_version", *NVSWITCH_NEEDS),
    observe=observe,
    accept=Equals(Ref("gpu.driver_version")),
    applies=(NOT_CONTAINER,),
    remedy=repair(
        "Install Fabric Manager in the driver's version and hold both, for example on Ubuntu: apt install "
        "nvidia-fabricmanager-BRANCH=VERSION-*; apt-mark hold nvidia-fabricmanager-BRANCH. Then, on an idle node: "
        "systemctl restart nvidia-fabricmanager"
    ),
    severity="critical",
    name="Fabric Manager",
)

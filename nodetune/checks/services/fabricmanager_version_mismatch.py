"""Fabric Manager's version is not the driver's.

Why it matters: Fabric Manager only works with the driver of exactly its own version and ends at its start otherwise.
The usual cause is an update that took one of the two packages along; the node then breaks at the next boot.
Confirm by hand: nv-fabricmanager --version; cat /proc/driver/nvidia/version
Side effects of the fix: Needs idle GPUs: the driver or Fabric Manager is replaced and restarted.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from nodetune.checks.services._units import NVSWITCH_NEEDS, require_nvswitch
from nodetune.conditions import BARE_METAL, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    require_nvswitch(facts)
    return str(facts["services.fabricmanager_version"])


CHECK = Check(
    needs=("services.fabricmanager_version", *NVSWITCH_NEEDS),
    observe=observe,
    accept=Equals(Ref("gpu.driver_version")),
    applies=(BARE_METAL, NOT_CONTAINER),
    remedy=manual(
        "Install Fabric Manager in the driver's version and hold both, for example on Ubuntu: "
        "apt install nvidia-fabricmanager-BRANCH=VERSION-*; apt-mark hold nvidia-fabricmanager-BRANCH; "
        "then on an idle node: systemctl restart nvidia-fabricmanager"
    ),
    severity="critical",
)

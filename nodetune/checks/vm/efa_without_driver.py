"""An AWS Elastic Fabric Adapter has no driver.

Why it matters: Without the efa driver the adapter does not exist for libfabric, and NCCL goes over plain TCP on the primary
interface without saying so: a fraction of the bandwidth between instances.
Confirm by hand: lspci -nnk -d 1d0f: ; fi_info -p efa
Side effects of the fix: None for running jobs.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html ; https://github.com/amzn/amzn-drivers
"""

from nodetune.conditions import VIRTUAL
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

AMAZON = "1d0f"


def observe(facts: View) -> dict[str, str]:
    devices = facts["pci.devices"].items()
    adapters = {bdf: each for bdf, each in devices if each["vendor"] == AMAZON and each["device"].startswith("efa")}
    return {bdf: each["driver"] or "no driver" for bdf, each in adapters.items()}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=OneOf(["efa", "vfio-pci"]),
    applies=(VIRTUAL,),
    remedy=manual(
        "Run the EFA installer of AWS (efa_installer.sh -y), or modprobe efa where the kernel already has it."
    ),
    severity="high",
)

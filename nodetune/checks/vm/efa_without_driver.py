"""An AWS Elastic Fabric Adapter (EFA) has no driver.

Why it matters: Without the efa driver, libfabric does not find the adapter. NCCL silently uses plain TCP on the primary
interface, at a fraction of the bandwidth between instances.
Healthy exception: Other Amazon devices do not need this driver.
Confirm manually: lspci -nnk -d 1d0f: ; fi_info -p efa
Side effects of the fix: None for running jobs.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html ; https://github.com/amzn/amzn-drivers
"""

from nodetune.api import VIRTUAL, Check, FactsView, OneOf, manual
from nodetune.checks.shared.pci_devices import efa_adapters


def observe(facts: FactsView) -> dict[str, str]:
    return {bdf: each["driver"] or "no driver" for bdf, each in efa_adapters(facts["pci.devices"]).items()}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=OneOf(["efa", "vfio-pci"]),
    applies=(VIRTUAL,),
    remedy=manual(
        "Run the EFA installer of AWS (efa_installer.sh -y), or modprobe efa if the kernel already includes it."
    ),
    severity="high",
    cost="bandwidth",
)

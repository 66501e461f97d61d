"""GPUDirect Storage, for sites that have it among their parts. Pure."""

from collections.abc import Mapping

from nodetune.provision.facts import HostRefusedError, ProvisionFacts
from nodetune.provision.package_data import Needed

GDS = "gds"

FACTS = ("block.gds",)


def check(seen: ProvisionFacts, parts: Mapping[str, Needed], choices: Mapping[str, str]) -> None:
    """Raise HostRefusedError where nvidia-fs cannot work, or where its work is done without it.

    Sources: https://docs.nvidia.com/gpudirect-storage/release-notes/index.html (open kernel modules only);
    https://docs.nvidia.com/gpudirect-storage/getting-started/gds-installation.html (PCI P2PDMA instead of nvidia-fs).
    """
    if GDS not in parts:
        return
    if choices["modules"] != "open":
        raise HostRefusedError("nvidia-fs needs the open kernel modules, which these GPUs do not take", LEAVE_OUT)
    if (seen("block.gds") or {}).get("p2pdma"):
        reason = (
            "GPUDirect Storage uses PCI P2PDMA there (use_pci_p2pdma in /etc/cufile.json), which needs no nvidia-fs"
        )
        raise HostRefusedError(
            reason, f"{LEAVE_OUT}, or set use_pci_p2pdma to false for storage that is not local NVMe"
        )


LEAVE_OUT = "remove gds from the parts of the site file"

"""The machine has fewer GPUs than its platform.

Why it matters: A GPU that vanished from the PCI bus leaves no trace except a lower count. Some platforms imply how many
there should be: boards with NVSwitches and HGX B200 and B300 have eight, GB200, GB300 and VR200 trays four, and some clouds
name the machine type. A virtual machine may have a part of a board: there only a whole set of switches counts,
and none that has no GPU: it manages the switches for others.
Healthy exception: A virtual machine may have a part of a board, or only the switches.
Does not gate: The GPUs that are left work, and a site may use them until the repair. Slurm itself takes out of service
a node with fewer GPUs than gres.conf lists.
Confirm manually: lspci -d 10de: -nn; cat /sys/class/dmi/id/product_name
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html (baseboards, full passthrough) ;
https://docs.nvidia.com/multi-node-nvlink-systems/multi-node-tuning-guide/overview.html ;
https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
"""

import re
from typing import Any

from nodetune import data
from nodetune.api import Check, Empty, FactAbsentError, FactsView, repair
from nodetune.checks.shared.gpu_peers import RACKS
from nodetune.checks.shared.pci_devices import physical_gpus

BOARD, TRAY = 8, 4
WHOLE_SETS = {("22a3", 4): 8, ("1af1", 6): 8, ("1af1", 12): 16, ("1ac2", 6): 8, ("1ac2", 12): 16}
"""(Model of the NVSwitches, how many) → GPUs: HGX H100 and H200, A100, V100."""
MAX_SWITCHES = 6
"""NVSwitches of one board."""


def observe(facts: FactsView) -> str:
    devices, gpus = facts.readable("pci.devices", {}), facts.readable("pci.gpus")
    have = facts["gpu.count"] if gpus is None else len(physical_gpus(facts))
    wanted = data.gpus_of_machine(facts.readable("host.dmi.product_name", "")) or _of_board(facts, devices, have)
    if not wanted:
        raise FactAbsentError(
            "the number of GPUs of this platform is unknown: a site file can set it (gpu-count-unexpected)"
        )
    return f"{have} of {wanted}" if have < wanted else ""


def _of_board(facts: FactsView, devices: dict[str, Any], have: int) -> int:
    switches = [each for each in devices.values() if each["vendor"] == "10de" and each["class"] == "0680"]
    if facts["host.virtual"]:
        return WHOLE_SETS.get((switches[0].get("device"), len(switches)), 0) if switches and have else 0
    if switches:
        return BOARD * -(-len(switches) // MAX_SWITCHES)
    return _of_model(facts, have)


def _of_model(facts: FactsView, have: int) -> int:
    """Return the GPUs of the platform that the model is made for. Few of many are another platform, or a part of it."""
    names = list(facts.readable("gpu.names", {}).values())
    if any(re.search(r"\bB[23]00\b", name) for name in names):
        return BOARD if have > BOARD // 2 else 0
    if any(map(RACKS.search, names)):
        return TRAY if have > TRAY // 2 else 0
    return 0


CHECK = Check(
    needs=("pci.devices", "pci.gpus", "gpu.count", "gpu.names", "host.dmi.product_name", "host.virtual"),
    observe=observe,
    accept=Empty("all GPUs of the platform"),
    remedy=repair(
        "Find the empty place: compare lspci -tv and nvidia-smi --query-gpu=pci.bus_id --format=csv with an identical "
        "machine. Power the host off and on, check seating and power cables, read the BMC's event log, then open a case "
        "with the vendor. In a cloud, stop and start the machine or ask for another."
    ),
    severity="critical",
    name="GPUs",
    part_of=("gpu-lost", "gpu-missing", "gpu-count-unexpected"),
)

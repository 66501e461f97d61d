"""All GPUs hang from one NUMA node of several.

Why it matters: Processes of all GPUs then compete for the cores and memory channels of one node, or work from the far
one. Some machines are built with every GPU behind one processor; in others it means that a riser or switch of the other
side is missing, or that the firmware reports the wrong proximity.
Confirm by hand: nvidia-smi topo -m
Side effects of the fix: Hardware work, so the node is out of service.
Sources: https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html ;
https://docs.nvidia.com/ai-enterprise/reference-architecture/latest/compute-node-hardware.html
"""

from nodetune.conditions import BARE_METAL, GPU_ON_PCI, SEVERAL_NUMA_NODES
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

WORTH_SPREADING = 4


def observe(facts: View) -> str:
    """All of them on one node, in words; nothing where they are spread, few, or not known."""
    devices, gpus = facts["pci.devices"], facts["pci.gpus"]
    nodes = {devices[gpu]["numa_node"] for gpu in gpus if gpu in devices}
    if len(gpus) < WORTH_SPREADING or len(nodes) != 1 or nodes & {-1, None}:
        return ""
    return f"all {len(gpus)} on node {nodes.pop()}"


CHECK = Check(
    observe=observe,
    needs=("pci.devices", "pci.gpus"),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES, GPU_ON_PCI),
    accept=Empty("GPUs spread over the nodes"),
    remedy=manual(
        "Compare with the vendor's block diagram. If the machine is built so, bind jobs to that node's cores and waive "
        "this for its hosts; if not, look for the missing riser or switch in lspci -t and the BMC's event log."
    ),
    severity="info",
)

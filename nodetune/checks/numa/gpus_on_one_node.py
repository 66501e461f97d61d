"""All GPUs are attached to one NUMA node.

Why it matters: The processes of all GPUs compete for the cores and memory channels of one node, or run on the far one.
Some machines attach every GPU to one processor. In others, a riser or switch of the other side is missing, or the
firmware reports the wrong proximity.
Confirm manually: nvidia-smi topo -m
Side effects of the fix: The fix is hardware work, so the node is out of service.
Sources: https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html ;
https://docs.nvidia.com/ai-enterprise/reference-architecture/latest/compute-node-hardware.html
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual

WORTH_SPREADING = 4


def observe(facts: FactsView) -> str:
    """Return a description if all GPUs are on one node, or an empty string if they are spread, few or unknown."""
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
        "Compare with the vendor's block diagram. If the machine is built this way, bind jobs to that node's cores and waive "
        "this for its hosts. If not, look for the missing riser or switch in lspci -t and the BMC's event log."
    ),
    severity="info",
    name="GPUs",
)

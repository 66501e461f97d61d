"""A NUMA node has less memory than the others, or none.

Why it matters: Sockets of a GPU server are filled alike. Less memory on one means that a module failed its training at
boot or was taken out: that socket has lost memory channels, so it has less bandwidth too, and processes bound to it
run out of memory first.
Confirm by hand: numactl -H; dmidecode -t memory | grep -E 'Locator|Size'
Side effects of the fix: The node is out of service while modules are replaced.
Sources: https://docs.kernel.org/mm/numa.html ;
https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html
"""

from nodetune import show
from nodetune.conditions import BARE_METAL, SEVERAL_NUMA_NODES
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

PER_CENT_OF_LARGEST = 90  # what the kernel and the firmware take for themselves is far less than the rest


def observe(facts: View) -> dict[str, object]:
    """Each node with CPUs that has much less memory than the largest."""
    sizes = {name: node["memory_kb"] for name, node in facts["numa.nodes"].items() if node["cpu_count"]}
    most = max(sizes.values(), default=0)
    short = {name for name, size in sizes.items() if size * 100 < most * PER_CENT_OF_LARGEST}
    told = {name: f"{show.size(size * 1024)}, the largest has {show.size(most * 1024)}" for name, size in sizes.items()}
    return {f"node{name}": told[name] if name in short else [] for name in sizes}


CHECK = Check(
    observe=observe,
    needs=("numa.nodes",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("the same memory on every node"),
    remedy=manual(
        "Compare dmidecode -t memory with the bill of materials and the BMC's event log (ipmitool sel list): a module "
        "that is not listed, or listed as disabled, is reseated or replaced."
    ),
    severity="medium",
)

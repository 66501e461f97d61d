"""A NUMA node has less memory than the others.

Why it matters: The sockets of a GPU server have equal memory. Less on one, or none, means that a module failed its
training at boot or was removed. That socket has lost memory channels, so it has less bandwidth too, and processes bound
to it run out of memory first.
Confirm manually: numactl -H; dmidecode -t memory | grep -E 'Locator|Size'
Side effects of the fix: The node is out of service while modules are replaced.
Sources: https://docs.kernel.org/mm/numa.html ;
https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html
"""

from nodetune.api import BARE_METAL, SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual
from nodetune.foundation import text

PERCENT_OF_LARGEST = 90  # the kernel and the firmware reserve far less than the remaining tenth


def observe(facts: FactsView) -> dict[str, object]:
    """Return each node with CPUs that has much less memory than the largest."""
    sizes = {name: node["memory_kb"] for name, node in facts["numa.nodes"].items() if node["cpu_count"]}
    most = max(sizes.values(), default=0)
    short = {name for name, size in sizes.items() if size * 100 < most * PERCENT_OF_LARGEST}
    texts = {
        name: f"{text.size(size * 1024)}, the largest has {text.size(most * 1024)}" for name, size in sizes.items()
    }
    return {f"node{name}": texts[name] if name in short else [] for name in sizes}


CHECK = Check(
    observe=observe,
    needs=("numa.nodes",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("the same memory on every node"),
    remedy=manual(
        "Compare dmidecode -t memory with the bill of materials and the BMC's event log (ipmitool sel list): reseat or "
        "replace a module that is missing there or listed as disabled."
    ),
    severity="medium",
)

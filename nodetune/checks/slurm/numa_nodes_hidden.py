"""Slurm counts fewer sockets than the host has NUMA nodes.

Why it matters: Slurm keeps a job's cores and GPUs together within a socket. If the processor is divided into several
NUMA nodes (NPS2, NPS4, sub-NUMA clustering), a socket covers more than one of them, and cores may be far from the GPU.
Confirm manually: slurmd -C --parameters=numa_node_as_socket; numactl -H
Side effects of the fix: The node's line must name the new Sockets and CoresPerSocket, or the node becomes invalid.
Sources: https://slurm.schedmd.com/slurm.conf.html
"""

from nodetune.api import GPU_ON_PCI, SLURM, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared.slurm_settings import words


def observe(facts: FactsView) -> str:
    sockets = facts["slurm.node"]["sockets"]
    if sockets is None:
        raise FactAbsentError("the node's line in slurm.conf names no sockets")
    nodes = sum(1 for node in facts["numa.nodes"].values() if node["cpus"])
    divided = words(facts["slurm.config"]["settings"], "slurmdparameters") & {
        "numa_node_as_socket",
        "l3cache_as_socket",
    }
    return "" if divided or sockets >= nodes else f"{sockets} sockets for {nodes} NUMA nodes"


CHECK = Check(
    needs=("slurm.node", "slurm.config", "numa.nodes"),
    observe=observe,
    accept=Empty("a socket for each NUMA node"),
    applies=(SLURM, GPU_ON_PCI),
    remedy=manual(
        "Consider SlurmdParameters=numa_node_as_socket with the line that slurmd -C --parameters=numa_node_as_socket "
        "prints, on all nodes of this kind; then restart slurmctld and slurmd."
    ),
    severity="info",
    name="sockets in Slurm",
)

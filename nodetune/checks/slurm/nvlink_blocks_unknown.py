"""Slurm does not know the NVLink domain of this node.

Why it matters: The trays of a GB200, GB300 or VR200 rack share one NVLink fabric. Without topology/block, Slurm places a job on
trays of several racks although one has room, and the job's traffic between them goes over the network cards.
Confirm manually: scontrol show config | grep TopologyPlugin; nvidia-smi -q | grep -E 'ClusterUUID|CliqueId'
Side effects of the fix: slurmctld restarts. Jobs that ask for segments (--segment) may wait longer.
Sources: https://slurm.schedmd.com/topology.html#block ; https://slurm.schedmd.com/topology.yaml.html
"""

from __future__ import annotations

from nodetune.api import GPU, SLURM, Absent, Check, Equals, FactsView, Unread, manual
from nodetune.checks.shared.gpu_peers import RACKS


def observe(facts: FactsView) -> str | Absent | Unread:
    """Return the plugin; flat where no line names one, which is the default. topology.yaml outweighs the line."""
    rack = any(each["state"] == "completed" and each.get("cluster_uuid") for each in facts["gpu.fabric"].values())
    if not rack or not any(map(RACKS.search, facts["gpu.names"].values())):
        return Absent("no tray of an NVLink rack")
    kinds = facts["slurm.cluster"].get("topologyyaml")
    if kinds is None:
        return str(facts["slurm.cluster"].get("topologyplugin", "topology/flat"))
    if not kinds:
        return Unread("topology.yaml: its topologies are not written line by line")
    return "topology/" + ("block" if "block" in kinds.split(",") else kinds)


CHECK = Check(
    needs=("gpu.fabric", "gpu.names", "slurm.cluster"),
    observe=observe,
    accept=Equals("topology/block"),
    applies=(SLURM, GPU),
    remedy=manual(
        "Write TopologyPlugin=topology/block into slurm.conf, and into topology.conf a line BlockName= for each rack (the nodes "
        "whose GPUs show one ClusterUUID) and BlockSizes=18. If there is a topology.yaml, Slurm ignores both: add to it a topology with block: "
        "block_sizes: [18] and blocks:. Restart slurmctld."
    ),
    severity="info",
)

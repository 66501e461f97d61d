"""A GPU belongs to another NVLink clique than its peers.

Why it matters: Only GPUs of one clique reach each other over NVLink. NCCL sees a GPU of another clique as a separate machine
and sends its traffic over the network cards. On one board or tray, a different clique means that the GPU registered with
another partition, often after a part was exchanged.
Confirm manually: nvidia-smi -q | grep -E 'CliqueId|ClusterUUID'
Side effects of the fix: The GPUs are reset, so the node must be idle.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html ;
https://github.com/NVIDIA/nccl (src/mnnvl.cc)
"""

from __future__ import annotations

from collections import Counter

from nodetune.api import GPU, Absent, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str] | Absent:
    """Return GPU → its clique where the others have another. Without a majority, none counts as right."""
    joined = {gpu: each for gpu, each in facts["gpu.fabric"].items() if each["state"] == "completed"}
    cliques = {gpu: f"{each.get('cluster_uuid', '')} / {each['clique_id']}" for gpu, each in joined.items()}
    usual, count = Counter(cliques.values()).most_common(1)[0] if cliques else ("", 0)
    if 2 * count <= len(cliques) or len(cliques) < 2:
        return Absent("no fabric that most GPUs of this host share")
    return {gpu: "" if each == usual else f"clique {each}, others {usual}" for gpu, each in cliques.items()}


CHECK = Check(
    needs=("gpu.fabric",),
    observe=observe,
    accept=Empty("one clique"),
    applies=(GPU,),
    remedy=manual(
        "Look for the GPU's partition in the fabric manager of the rack (NMX-C, or nv-fabricmanager's log). Drain the node, put "
        "the GPU into the partition of its peers, and reset all GPUs (nvidia-smi -r)."
    ),
    severity="low",
    cost="bandwidth",
    part_of=("gpu-fabric-not-ready", "gpu-fabric-unhealthy"),
)

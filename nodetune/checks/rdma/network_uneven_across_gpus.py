"""GPUs of one NUMA node have less network bandwidth than those of another.

Why it matters: A collective operation over several hosts ends when the last GPU has its data. With four cards next to
four GPUs and two next to the other four, the second half sets the pace, or reaches cards across the socket link. Not judged while a
port is down or slow: that is reported by itself.
Confirm by hand: nvidia-smi topo -m; grep . /sys/class/infiniband/*/device/numa_node
Side effects of the fix: Moving cards needs the machine off.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html ;
https://docs.kernel.org/PCI/sysfs-pci.html
"""

from collections import Counter
from typing import Any

from nodetune.checks.rdma._ports import Ports, groups, own
from nodetune.conditions import BARE_METAL, GPU_ON_PCI, SEVERAL_NUMA_NODES
from nodetune.expect import Empty
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> dict[str, str] | Absent:
    devices = facts["pci.devices"]
    gpus = Counter(devices[bdf]["numa_node"] for bdf in facts["pci.gpus"] if bdf in devices)
    compute = _compute(facts["rdma.ports"])
    if len(gpus) < 2 or min(gpus) < 0 or len(compute) * 2 < gpus.total():
        return Absent("no card for every two GPUs, or GPUs on one NUMA node only")
    share = {node: sum(p["rate_gbps"] for p in compute if p["numa_node"] == node) / gpus[node] for node in sorted(gpus)}
    best = max(share.values())
    return {
        f"NUMA node {node}": "" if each == best else f"{each:g} Gb/s for each GPU, others {best:g}"
        for node, each in share.items()
    }


def _compute(ports: Ports) -> list[dict[str, Any]]:
    """The largest group of ports that should be alike: storage and management cards are fewer."""
    alike = list(max(map(dict, groups(own(ports))), key=len, default={}).values())
    if any(port["state"] != "ACTIVE" for port in alike) or len({port["rate_gbps"] for port in alike}) > 1:
        raise Missing("a port is down or slower than its siblings, which is reported by itself")
    return alike


CHECK = Check(
    needs=("pci.devices", "pci.gpus", "rdma.ports"),
    observe=observe,
    accept=Empty("the same for each GPU"),
    applies=(BARE_METAL, GPU_ON_PCI, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Compare with the maker's slot plan: a card that is missing on that node (rdma link) explains most cases; "
        "otherwise move cards so that each GPU has the same network bandwidth on its own node."
    ),
    severity="low",
)

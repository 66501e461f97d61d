"""GPUs on different NUMA nodes have unequal network bandwidth.

Why it matters: A collective across hosts ends when the last GPU has its data. With four cards next to four GPUs and
two next to the other four, the second half sets the pace, or reaches cards across the socket link. The check does not
apply while a port is down or slow: another check reports that.
Confirm manually: nvidia-smi topo -m; grep . /sys/class/infiniband/*/device/numa_node
Side effects of the fix: Moving cards needs the machine off.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html ;
https://docs.kernel.org/PCI/sysfs-pci.html
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from nodetune.api import (
    BARE_METAL,
    GPU_ON_PCI,
    SEVERAL_NUMA_NODES,
    Absent,
    Check,
    Empty,
    FactAbsentError,
    FactsView,
    manual,
)
from nodetune.checks.shared.rdma_ports import Ports, groups, own


def observe(facts: FactsView) -> dict[str, str] | Absent:
    devices = facts["pci.devices"]
    gpus = Counter(devices[bdf]["numa_node"] for bdf in facts["pci.gpus"] if bdf in devices)
    compute = _compute(facts["rdma.ports"])
    if len(gpus) < 2 or min(gpus) < 0 or len(compute) * 2 < sum(gpus.values()):
        return Absent("no card for every two GPUs, or GPUs on one NUMA node only")
    share = {node: sum(p["rate_gbps"] for p in compute if p["numa_node"] == node) / gpus[node] for node in sorted(gpus)}
    best = max(share.values())
    return {
        f"NUMA node {node}": "" if each == best else f"{each:g} Gb/s for each GPU, others {best:g}"
        for node, each in share.items()
    }


def _compute(ports: Ports) -> list[dict[str, Any]]:
    """Return the largest group of ports that should be alike: storage and management cards are fewer."""
    alike = list(max(map(dict, groups(own(ports))), key=len, default={}).values())
    if any(port["state"] != "ACTIVE" for port in alike) or len({port["rate_gbps"] for port in alike}) > 1:
        raise FactAbsentError("a port is down or slower than its peers, which another check reports")
    return alike


CHECK = Check(
    needs=("pci.devices", "pci.gpus", "rdma.ports"),
    observe=observe,
    accept=Empty("the same for each GPU"),
    applies=(BARE_METAL, GPU_ON_PCI, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Compare with the vendor's slot plan: a missing card on that node (rdma link) explains most cases. Otherwise "
        "move cards so that each GPU has the same network bandwidth on its own node."
    ),
    severity="low",
)

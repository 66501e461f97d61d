"""NCCL_IB_HCA leaves out ports that are next to GPUs.

Why it matters: NCCL uses the port under a GPU's own PCIe switch. Where it is left out, the GPU's traffic goes through the port of
another GPU, and both share its rate. Reported: active ports of the rate and link layer of the named ones, under switches that
have more GPUs than named ports. Not ports of the default route, nor those on the network of an NFS or Lustre server.
Healthy exception: A second adapter under a switch, for storage, costs nothing: each GPU there has a named port.
Confirm manually: nvidia-smi topo -m; rdma link; grep -r NCCL_IB_HCA /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: New jobs use more adapters. Run a bandwidth test between two nodes.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-hca ;
https://github.com/NVIDIA/nccl (src/graph/search.cc, src/graph/paths.cc)
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from typing import Any

from nodetune.api import GPU_ON_PCI, RDMA, Check, Empty, FactsView, manual
from nodetune.checks.nccl._adapters import Ports, left_out
from nodetune.checks.shared.rdma_ports import for_gpus

ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
REMOTE = ("nfs", "nfs4", "lustre", "ceph", "beegfs")


def observe(facts: FactsView) -> Any:
    devices, others = facts["pci.devices"], _other_use(facts)
    ports = for_gpus(facts["rdma.ports"])
    switches = {name: _switch(devices.get(port["bdf"])) for name, port in ports.items()}
    gpus = Counter(_switch(devices.get(gpu)) for gpu in facts["pci.gpus"])

    def missed(taken: Ports, rest: Ports) -> str:
        kinds = {(port["rate_gbps"], port["link_layer"]) for port in taken.values()}
        named = Counter(switches[name] for name in taken)
        free = {name: port for name, port in rest.items() if switches[name] and port["netdev"] not in others}
        alike = [name for name, port in free.items() if (port["rate_gbps"], port["link_layer"]) in kinds]
        near = sorted(name for name in alike if named[switches[name]] < gpus[switches[name]])
        return f"leaves out {', '.join(near)}, next to GPUs and as fast as {', '.join(sorted(taken))}" if near else ""

    return left_out(facts["nccl.settings"], ports, missed) or []


def _switch(device: Any) -> str:
    """Return the root port above a switch; empty for a device that is at a root port itself, or unknown."""
    parents = (device or {}).get("parents") or []
    return str(parents[0]) if len(parents) > 1 else ""


def _other_use(facts: FactsView) -> set[str]:
    """Return the links of the default route and of networks with servers of mounts, with the members of bonds."""
    mounts = [each for each in facts.readable("mounts.points", {}).values() if each["type"] in REMOTE]
    text = " ".join(" ".join([each["source"], *each["super_options"]]) for each in mounts)
    servers = [
        ipaddress.ip_address(found)
        for found in ADDRESS.findall(text)
        if all(int(part) < 256 for part in found.split("."))
    ]
    found = {facts.readable("net.default_interface", "")}
    for subnet, links in facts.readable("net.subnets", {}).items():
        if any(server in ipaddress.ip_network(subnet, strict=False) for server in servers):
            found |= set(links)
    return found | {name for name, link in facts.readable("net.links", {}).items() if link.get("master") in found}


CHECK = Check(
    needs=(
        "nccl.settings",
        "rdma.ports",
        "pci.devices",
        "pci.gpus",
        "mounts.points",
        "net.subnets",
        "net.links",
        "net.default_interface",
    ),
    observe=observe,
    accept=Empty("unset, or every port next to a GPU"),
    applies=(GPU_ON_PCI, RDMA),
    remedy=manual(
        "Name all adapters next to GPUs (nvidia-smi topo -m: PIX or PXB): NCCL_IB_HCA==mlx5_0,mlx5_1,... in nccl.conf. Without the "
        "line NCCL uses every active port. If a port is for storage, waive the finding."
    ),
    severity="medium",
    part_of="nccl-hca-selection-wrong",
    cost="bandwidth",
)

"""The kubelet offers GPUs, but not the RDMA cards for their traffic.

Why it matters: Pods get GPUs without /dev/infiniband. NCCL then sends over TCP, which is several times slower, and only its
log says so. An RDMA device plugin, the SR-IOV plugin or a DRA driver for networks gives cards to pods.
Healthy exception: Pods that run privileged on the host's network use the cards without a plugin.
Confirm manually: kubectl get node NODE -o jsonpath='{.status.allocatable}'; ls /var/lib/kubelet/plugins_registry
Side effects of the fix: None for running pods.
Sources: https://docs.nvidia.com/networking/display/kubernetes25100/deployment-guide-kubernetes.html ;
https://github.com/Mellanox/k8s-rdma-shared-dev-plugin
"""

from __future__ import annotations

import re

from nodetune.api import GPU_ON_PCI, KUBELET, RDMA, Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.shared import rdma_ports
from nodetune.foundation import text

GPUS = re.compile(r"gpu|^nvidia\.com/mig-")


def observe(facts: FactsView) -> str:
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    devices = facts.get("kubernetes.devices", {})
    if not any(count for name, count in devices.items() if GPUS.search(name)):
        raise FactAbsentError("no device plugin offers GPUs")
    cards = rdma_ports.for_gpus(facts["rdma.ports"])
    if not cards:
        raise FactAbsentError("no active RDMA port is fast enough for GPU traffic")
    others = [name for name in devices if not GPUS.search(name)]
    by_dra = any(not GPUS.search(name) for name in facts["kubernetes.plugins"] if name.endswith("-reg.sock"))
    if by_dra or any(devices[name] for name in others):
        return ""
    return f"{', '.join(others)}: 0 devices" if others else f"none of {text.count(len(cards), 'port')}"


CHECK = Check(
    needs=("kubernetes.kubelet", "kubernetes.devices", "kubernetes.plugins", "rdma.ports"),
    observe=observe,
    accept=Empty("RDMA devices next to the GPUs"),
    applies=(KUBELET, GPU_ON_PCI, RDMA),
    remedy=manual(
        "Install NVIDIA's Network Operator, or the RDMA shared device plugin, and let pods ask for its resource next to "
        "nvidia.com/gpu. If pods use the cards in another way, waive this check."
    ),
    severity="info",
)

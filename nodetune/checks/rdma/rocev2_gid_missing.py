"""A RoCE port has no routable RoCE v2 GID.

Why it matters: RoCE v2 uses UDP from one of the port's GIDs, which the kernel makes from the IP addresses of its
network link. Without one, NCCL finds no usable GID, and connections fail or stay on one switch. The index of the GID
differs from host to host. From 2.21 on, NCCL finds it itself, and NCCL_IB_GID_INDEX should stay unset.
Healthy exception: With Kubernetes, the virtual functions in pods have the addresses. Next to InfiniBand, Ethernet ports
are for storage and management. Ports below 100 Gb/s, and of virtual machines whose host switches RoCE off (no GID at all), carry
TCP. iWARP has no RoCE GIDs.
Confirm manually: show_gids; grep -H . /sys/class/infiniband/*/ports/1/gid_attrs/types/* 2>/dev/null
Side effects of the fix: An address on the link may add a route; keep the data networks separate from management.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband ;
https://github.com/Azure/azhpc-images/issues/213 (the front end of a virtual machine) ;
https://github.com/Azure/azhpc-diagnostics/issues/59 (it has no GID) ;
https://github.com/prometheus/node_exporter/issues/966 (iWARP, which the kernel loads by itself)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import for_gpus, without_iwarp

LOCAL, NONE = "only link-local RoCE v2 GIDs", "no RoCE v2 GID"


def observe(facts: FactsView) -> dict[str, str] | Absent:
    if for_gpus(facts["rdma.ports"], "InfiniBand"):
        return Absent("the GPUs have InfiniBand")
    able = without_iwarp(facts["rdma.ports"], facts.readable("rdma.devices", {}))
    ports, gids = for_gpus(able, "Ethernet"), facts["rdma.gids"]
    faults = {name: _fault(gids.get(name, [])) for name in ports}
    # a port without an IP address is at fault if peers of its rate have one; others may not be meant for RDMA
    used = {ports[name]["rate_gbps"] for name, fault in faults.items() if not fault}
    if not used and facts["kubernetes.present"]:
        return Absent("Kubernetes may give the addresses to pods")
    virtual = facts.readable("host.virtual", default=False)
    for name, fault in faults.items():
        roce_off = virtual and not gids.get(name)
        if ports[name]["rate_gbps"] not in used and (roce_off or (fault == LOCAL and used)):
            faults[name] = ""
    return faults or Absent("no active RoCE port of 100 Gb/s or more")


def _fault(gids: list[dict[str, Any]]) -> str:
    modern = [entry["gid"] for entry in gids if entry["type"] == "RoCE v2"]
    if any(not gid.startswith("fe80:") for gid in modern):
        return ""
    return LOCAL if modern else NONE


CHECK = Check(
    needs=("rdma.ports", "rdma.gids", "rdma.devices", "kubernetes.present", "host.virtual"),
    observe=observe,
    accept=Empty("a RoCE v2 GID made from the link's IP address"),
    remedy=manual(
        "Give the port's network link its IP address on the data network and bring it up. If only RoCE v1 entries "
        "show: cma_roce_mode -d DEVICE -p 1 -m 2, and load the driver with RoCE v2 enabled."
    ),
    severity="high",
)

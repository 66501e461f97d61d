"""NCCL_IB_GID_INDEX names a GID that cannot work on this host.

Why it matters: On RoCE, NCCL takes the GID with this index on every port, whatever is there. An empty entry fails when
connections start; RoCE v1 does not pass a router; and ports whose entries are of different kinds cannot reach each other.
The check judges the ports that NCCL_IB_HCA selects, or all active ones of 100 Gb/s or more.
Healthy exception: An index with a RoCE v2 GID of one kind on every port works. On InfiniBand NCCL ignores it. With
Kubernetes, the virtual functions in pods have the addresses.
Confirm manually: show_gids; grep -rn NCCL_IB_GID_INDEX /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None: apply removes the line where NCCL is 2.21 or newer, which selects the GID itself, and each port
has a RoCE v2 GID with an IPv4 address, which is what it selects.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-gid-index ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/connect.cc, ncclIbGetGidIndex)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.api import RDMA, Absent, Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._adapters import selected
from nodetune.checks.shared.nccl_reading import number
from nodetune.checks.shared.nccl_settings import effective, problems
from nodetune.checks.shared.nccl_table import oldest, release
from nodetune.checks.shared.rdma_ports import for_gpus

MODERN = "RoCE v2"
CHOOSES_SINCE = (2, 21)
OTHER_CHOICE = ("NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_SOCKET_FAMILY")


def wrong_indexes(facts: FactsView) -> Any:
    ports = judged_ports(facts)
    if not ports:
        return Absent("no active RoCE port of 100 Gb/s or more has addresses")

    def judge(setting: Any, _: Any) -> str:
        index = number(setting["value"])[0]
        return _fault(index, ports) if setting["name"] == "NCCL_IB_GID_INDEX" and index >= 0 else ""

    return problems(facts["nccl.settings"], judge) or []


def judged_ports(facts: FactsView) -> dict[str, Any]:
    """Return the GIDs of each RoCE port that NCCL uses."""
    settings, gids = facts["nccl.settings"], facts["rdma.gids"]
    ports = {name: gids.get(name, []) for name in for_gpus(dict(selected(settings, facts["rdma.ports"])), "Ethernet")}
    if facts["kubernetes.present"]:
        return {name: found for name, found in ports.items() if any(map(_routable, found))}
    return ports


def choices(facts: FactsView) -> list[list[int]]:
    """Return for each port the indexes from which NCCL selects itself (RoCE v2, IPv4); nothing where that is unknown."""
    settings, version = facts["nccl.settings"], oldest(facts["nccl.libraries"])
    if release(version) < CHOOSES_SINCE or any(effective(settings, name) for name in OTHER_CHOICE):
        return []
    every = judged_ports(facts).values()
    return [[gid["index"] for gid in gids if _kind(gid["index"], [gid]) == f"{MODERN} (IPv4)"] for gids in every]


def left_alone(facts: FactsView) -> dict[str, str]:
    why = "NCCL before 2.21, a family or range that is set, or a port without a RoCE v2 GID of IPv4"
    found = choices(facts)
    return {} if found and all(found) else dict.fromkeys(wrong_indexes(facts), why)


def _fault(index: int, ports: Mapping[str, Any]) -> str:
    kinds: dict[str, list[str]] = {}
    for name, gids in sorted(ports.items()):
        kinds.setdefault(_kind(index, gids), []).append(name)
    if len(kinds) == 1 and next(iter(kinds)).startswith(MODERN):
        return ""
    return f"{index} is " + ", ".join(f"{kind} on {', '.join(names)}" for kind, names in kinds.items())


def _kind(index: int, gids: Iterable[Mapping[str, Any]]) -> str:
    found = next((gid for gid in gids if gid["index"] == index), None)
    if found is None:
        return "empty"
    if found["type"] != MODERN:
        return "RoCE v1"
    if not _routable(found):
        return f"{MODERN} (link-local)"
    return f"{MODERN} ({'IPv4' if found['gid'].startswith('0000:0000:0000:0000:0000:ffff:') else 'IPv6'})"


def _routable(gid: Mapping[str, Any]) -> bool:
    return gid["type"] == MODERN and not gid["gid"].startswith("fe80:")


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries", "rdma.ports", "rdma.gids", "kubernetes.present"),
    observe=wrong_indexes,
    accept=Empty("NCCL_IB_GID_INDEX not set, or an index with a RoCE v2 GID of one kind on every port"),
    applies=(RDMA,),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Delete the named line: NCCL 2.21 and newer selects the GID. For an older NCCL, give each port its address first, then "
        "name the index of RoCE v2 with that address, which must be the same on every port and host."
    ),
    severity="high",
)

"""The quality-of-service settings of RoCE ports contradict one another.

Why it matters: A port whose packets carry another class than its siblings', or a class that no priority with flow
control serves, loses packets under load where the others do not: bandwidth collapses at scale only. The class is the
DSCP value in the upper six bits of the traffic class; the card maps it to a priority, and PFC must be on for that one.
Confirm by hand: grep . /sys/class/infiniband/*/tc/1/traffic_class; dcb pfc show dev eth0; dcb app show dev eth0
Side effects of the fix: The link may restart; settings that differ from the switches' make pause storms.
Sources: https://github.com/NVIDIA/doroce-linux ; https://docs.nvidia.com/networking/display/MLNXOFEDv451010/Flow+Control
"""

from typing import Any

from nodetune.checks.rdma._ports import for_gpus, usual
from nodetune.expect import Empty
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View

NEEDS = ("rdma.ports", "rdma.traffic_class", "rdma.cm_tos", "net.dcb")
COMPARED = ("traffic class", "PFC priorities")


def observe(facts: View) -> dict[str, str] | Absent:
    """Ports of one rate are siblings: compute and storage networks may differ."""
    ports = for_gpus(facts["rdma.ports"], "Ethernet")
    if not ports:
        return Absent("no active RoCE port of 100 Gb/s or more")
    settings = {name: _settings(facts, name, port["netdev"]) for name, port in ports.items()}
    found = {}
    for rate in {port["rate_gbps"] for port in ports.values()}:
        siblings = {name: each for name, each in settings.items() if ports[name]["rate_gbps"] == rate}
        usually = {key: usual(_words(each[key]) for each in siblings.values()) for key in COMPARED}
        found.update({name: _problems(each, usually) for name, each in siblings.items()})
    return found


def _problems(port: dict[str, Any], usually: dict[str, str]) -> str:
    return "; ".join([*_unlike(port, usually), *_contradictions(port)])


def _settings(facts: View, name: str, netdev: str) -> dict[str, Any]:
    dcb = facts["net.dcb"].get(netdev, {})
    return {
        "traffic class": facts["rdma.traffic_class"].get(name),
        "connection manager": facts["rdma.cm_tos"].get(name),
        "PFC priorities": dcb.get("pfc"),
        "map": dcb.get("dscp_priority", {}),
    }


def _unlike(port: dict[str, Any], usually: dict[str, str]) -> list[str]:
    return [
        f"{key} {_words(port[key])}, siblings {common}"
        for key, common in usually.items()
        if _words(port[key]) != common
    ]


def _words(setting: Any) -> str:
    """None: not known to be set; an empty list: known to be off."""
    return (
        "not set"
        if setting is None
        else ", ".join(map(str, setting)) or "none"
        if isinstance(setting, list)
        else str(setting)
    )


def _contradictions(port: dict[str, Any]) -> list[str]:
    traffic, manager, lossless = port["traffic class"], port["connection manager"], port["PFC priorities"]
    if traffic is None:
        return []
    found = []
    if manager is not None and manager >> 2 != traffic >> 2:
        found.append(f"traffic class {traffic} but rdma_cm uses {manager}")
    priority = port["map"].get(str(traffic >> 2))
    if lossless and priority is not None and priority not in lossless:
        found.append(f"DSCP {traffic >> 2} has priority {priority}, PFC is on for {_words(lossless)}")
    if lossless and not port["map"]:
        found.append(f"DSCP {traffic >> 2} is set, but the card sorts by VLAN priority")
    return found


CHECK = Check(
    needs=NEEDS,
    observe=observe,
    accept=Empty("one class on all ports, served by a lossless priority"),
    remedy=manual(
        "On every RoCE port, to match the switches (here class 106 = DSCP 26 on priority 3): mlnx_qos -i LINK --trust=dscp "
        "--pfc=0,0,0,1,0,0,0,0; echo 106 > /sys/class/infiniband/DEVICE/tc/1/traffic_class; cma_roce_tos -d DEVICE -t 106. "
        "Repeat at boot: the card forgets. NCCL_IB_TC, where set, must be the same number."
    ),
    severity="high",
)

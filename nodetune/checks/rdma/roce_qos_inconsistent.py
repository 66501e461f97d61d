"""The QoS settings of RoCE ports are inconsistent.

Why it matters: Under load, a port loses packets if its class differs from its peers', or if no priority with flow
control serves its class. Bandwidth then collapses at scale only. The class is the DSCP value in the upper six bits of
the traffic class. The card maps it to a priority, and PFC must be on for that priority.
Healthy exception: Ports may all do without a class and without flow control.
Confirm manually: grep . /sys/class/infiniband/*/tc/1/traffic_class; dcb pfc show dev eth0; dcb app show dev eth0
Side effects of the fix: The link may restart; settings that differ from the switches' make pause storms.
Sources: https://github.com/NVIDIA/doroce-linux ; https://docs.nvidia.com/networking/display/MLNXOFEDv451010/Flow+Control
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import for_gpus, usual

NEEDS = ("rdma.ports", "rdma.traffic_class", "rdma.cm_tos", "net.dcb")
COMPARED = ("traffic class", "PFC priorities")


def observe(facts: FactsView) -> dict[str, str] | Absent:
    """Compare ports of the same rate: compute and storage networks may differ."""
    ports = for_gpus(facts["rdma.ports"], "Ethernet")
    if not ports:
        return Absent("no active RoCE port of 100 Gb/s or more")
    settings = {name: _settings(facts, name, port["netdev"]) for name, port in ports.items()}
    found = {}
    for rate in {port["rate_gbps"] for port in ports.values()}:
        peers = {name: each for name, each in settings.items() if ports[name]["rate_gbps"] == rate}
        common = {key: usual(_words(each[key]) for each in peers.values()) for key in COMPARED}
        found.update({name: _problems(each, common) for name, each in peers.items()})
    return found


def _problems(port: dict[str, Any], common: dict[str, str]) -> str:
    return "; ".join([*_unlike(port, common), *_contradictions(port)])


def _settings(facts: FactsView, name: str, netdev: str) -> dict[str, Any]:
    dcb = facts["net.dcb"].get(netdev, {})
    return {
        "traffic class": facts["rdma.traffic_class"].get(name),
        "connection manager": facts["rdma.cm_tos"].get(name),
        "PFC priorities": dcb.get("pfc"),
        "map": dcb.get("dscp_priority", {}),
    }


def _unlike(port: dict[str, Any], common: dict[str, str]) -> list[str]:
    return [f"{key} {_words(port[key])}, peers {text}" for key, text in common.items() if _words(port[key]) != text]


def _words(setting: Any) -> str:
    """Format a setting. None: nothing shows that it is set; an empty list: it is off."""
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
        "On every RoCE port, to match the switches (here class 106 = DSCP 26 on priority 3): mlnx_qos -i LINK "
        "--trust=dscp --pfc=0,0,0,1,0,0,0,0; echo 106 > /sys/class/infiniband/DEVICE/tc/1/traffic_class; cma_roce_tos "
        "-d DEVICE -t 106. Repeat at boot: the card does not keep the settings. NCCL_IB_TC, where set, must be the "
        "same number."
    ),
    severity="high",
)

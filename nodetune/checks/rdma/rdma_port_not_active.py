"""An RDMA port is not active.

Why it matters: NCCL uses only ports in state ACTIVE and does not report the others. The job runs with less bandwidth
or over TCP, or fails on the one node whose port is missing. DOWN means no signal (cable, optics, switch port). INIT
means that the link is up but no subnet manager has configured it. A port that is down counts only if most ports of its
kind are up, or the other of two InfiniBand ports: the rest often have no cable on purpose. If all ports are down, they count, but
not on a workstation: a host without Slurm, kubelet and BMC.
Healthy exception: A card for storage may have no cable on purpose, and so may half of the cards for GPUs. A workstation that
works over another card uses no RDMA: drivers load by themselves. NCCL does not use iWARP. For some minutes after a boot, cards and
the subnet manager may still be busy.
Does not gate: Jobs on one node need no network, NCCL uses the ports that are left, and a port may have no cable on
purpose.
Confirm manually: grep . /sys/class/infiniband/*/ports/*/*state
Side effects of the fix: None on this host.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband ;
https://github.com/deepseek-ai/DeepEP/issues/38 (four of eight cards in use) ;
https://github.com/NVIDIA/nodewright-packages/pull/111 (functions that appear 70 s after a boot) ;
https://github.com/prometheus/node_exporter/issues/966 (iWARP, which the kernel loads by itself)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import RDMA, Check, Empty, FactsView, Unread, repair
from nodetune.checks.shared.gpu_cards import FOR_DESKS, SMALL_SUPERCHIP, readable_names
from nodetune.checks.shared.nccl_reading import NcclSelection
from nodetune.checks.shared.nccl_settings import effective
from nodetune.checks.shared.network_links import in_use
from nodetune.checks.shared.rdma_ports import Ports, groups, own, without_iwarp

MAX_UNUSED_SHARE, SURE = 0.5, 0.75
"""Shares of the ports. Without PCI addresses, second ports of Ethernet cards, often without cable, count too."""

BOOT_SECONDS = 180

PAIR = 2
"""Two InfiniBand cards alike: both are meant to be used."""


def observe(facts: FactsView) -> dict[str, str | Unread]:
    every = own(facts["rdma.ports"])
    none = not any(port["state"] == "ACTIVE" for port in every.values())
    named = _named(facts, every)
    ports = {**without_iwarp(every, facts.readable("rdma.devices", {})), **named}
    found = {name: text for group in groups(ports) for name, text in _faults(group, none).items()}
    if none and _works_without(facts, every):
        found.update({name: "" for name, port in ports.items() if name not in named and _no_signal(port)})
    early = facts.readable("host.uptime_s", BOOT_SECONDS) < BOOT_SECONDS
    return {name: _early(text) if text and early else text for name, text in found.items()}


def _named(facts: FactsView, ports: Ports) -> Ports:
    """Return the ports that NCCL_IB_HCA selects: they are meant to be used."""
    setting = effective(facts.readable("nccl.settings", []), "NCCL_IB_HCA")
    if setting is None:
        return {}
    chosen = NcclSelection(setting["value"])
    return {name: ports[name] for name in ports if chosen.selected([name.rpartition("/")[0]])}


def _works_without(facts: FactsView, ports: Ports) -> bool:
    """Return whether this is a workstation with a link up on another card."""
    managed = facts["derived.managed"]
    small = [
        bool(SMALL_SUPERCHIP.search(name) or (FOR_DESKS.search(name) and not managed)) for name in readable_names(facts)
    ]
    others = in_use(facts.readable("net.links", {})).keys() - {port["netdev"] for port in ports.values()}
    return bool(small) and all(small) and bool(others)


def _no_signal(port: dict[str, Any]) -> bool:
    return bool(port["state"] == "DOWN" and port["link_layer"] == "Ethernet")


def _early(text: str) -> Unread:
    return Unread(f"{text}: the host has just booted, audit again in a few minutes")


def _faults(group: Ports, none: bool) -> dict[str, str]:
    """Return faults, without ports that are down where half of that kind or more are, unless no port is active at all."""
    up = [name for name, port in group.items() if port["state"] != "DOWN"]
    pair = len(group) == PAIR and all(port["link_layer"] == "InfiniBand" for port in group.values())
    unplaced = any(port["link_layer"] == "Ethernet" and not port["bdf"] for port in group.values())
    used = none or len(up) > len(group) * (SURE if unplaced else MAX_UNUSED_SHARE) or (pair and bool(up))
    return {name: _fault(port, used) for name, port in group.items()}


def _fault(port: dict[str, Any], used: bool) -> str:
    # on RoCE a missing cable also reads "Disabled"; on InfiniBand it means that an administrator disabled the port
    off = port["phys_state"] == "Disabled" and port["link_layer"] == "InfiniBand"
    if port["state"] == "ACTIVE" or off or (port["state"] == "DOWN" and not used):
        return ""
    unmanaged = port["state"] == "INIT" and port["link_layer"] == "InfiniBand" and port.get("sm_lid") == 0
    return f"{port['state']} ({port['phys_state']})" + ", no subnet manager answers" * unmanaged


CHECK = Check(
    needs=("rdma.ports", "rdma.devices", "host.uptime_s", "gpu.names", "net.links", "nccl.settings", "derived.managed"),
    observe=observe,
    accept=Empty("ACTIVE"),
    applies=(RDMA,),
    remedy=repair(
        "INIT: no subnet manager has configured the port. Start it where it should run (a switch, UFM, a server with "
        "opensm). If other hosts reach one (sminfo), check this port's cable and switch. DOWN: ip link set NETDEV up "
        "(RoCE), reseat the cable, try another switch port. If a port is meant to be unused, waive it."
    ),
    severity="critical",
)

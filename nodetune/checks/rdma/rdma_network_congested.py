"""An RDMA port discards or repeats packets because the network is congested.

Why it matters: Packets wait until a switch or the card gives up (port_xmit_discards), are sent again (roce_adp_retrans), or a
sender starts slowly again (roce_slow_restart): all ranks of a job wait for the slowest. It says nothing against this node:
many senders to one receiver, a slow receiver, uneven routes or a link that went down cause it. Credits that are awaited
(port_xmit_wait) are no fault, as any busy port counts them.
Confirm manually: grep . /sys/class/infiniband/*/ports/*/{counters/port_xmit_discards,hw_counters/roce_*}
Side effects of the fix: Changes of routing, PFC or ECN concern all nodes of the fabric.
Sources: https://docs.nvidia.com/networking/display/ufmsdnappumv41814/supported-traps-and-events (Port Xmit Discards) ;
https://github.com/NVIDIA/NVSentinel/blob/main/docs/designs/046-link-counter-detection.md (roce_slow_restart, 10/s) ;
https://git.kernel.org/torvalds/c/d7fab916374c (roce_adp_retrans, roce_slow_restart)
"""

from typing import Any

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT
from nodetune.checks.shared.rdma_ports import active

OF_PACKETS = ("port_xmit_discards", "roce_adp_retrans")
RESTART, RESTARTS_A_SECOND = "roce_slow_restart", 10
FULL = 65535
"""The highest port_xmit_discards, where a card counts it with 16 bits."""


def observe(facts: FactsView) -> dict[str, str]:
    counters, hardware, seconds = facts["rdma.counters"], facts["rdma.hw_counters"], facts["host.uptime_s"]
    ports = [name for name in active(facts["rdma.ports"]) if name in counters]
    return {name: _text({**counters[name], **hardware.get(name, {})}, seconds) for name in ports}


def _text(counted: dict[str, Any], seconds: int) -> str:
    sent = counted.get("port_xmit_packets", 0)
    lost = [(name, counted.get(name, 0)) for name in OF_PACKETS]
    found = [
        f"{name} {count:,} of {sent:,} packets" for name, count in lost if count >= max(DROPS_LEAST, DROPS_LIMIT * sent)
    ]
    if not found and lost[0][1] == FULL:
        found = [f"{OF_PACKETS[0]} {FULL:,} or more: the counter is full"]
    restarts = counted.get(RESTART, 0)
    return ", ".join(found + ([f"{RESTART} {restarts:,}"] if restarts > RESTARTS_A_SECOND * seconds else []))


CHECK = Check(
    needs=("rdma.ports", "rdma.counters", "rdma.hw_counters", "host.uptime_s"),
    observe=observe,
    accept=Empty("no more than one packet in 100000, and ten slow restarts a second"),
    applies=(RDMA,),
    remedy=manual(
        "Keep the node. Compare with other nodes at the same time: if all count them, look at the switches (adaptive routing, PFC "
        "and ECN, uplinks that are down); if one receiver is slow, its senders count them (nodetune verify --find-slow)."
    ),
    severity="low",
    cost="bandwidth",
)

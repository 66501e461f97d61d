"""The error rate of an RDMA port is high.

Why it matters: The cards resend damaged or lost packets. The program does not notice; it only runs slower. The
counters may be months old, so the check compares them with the packets counted over the same time; a fault that began
today on a busy port can still stay hidden. Packets out of order are no error here: adaptive routing causes them by
design.
Confirm manually: perfquery -x (InfiniBand); rdma statistic show; grep . /sys/class/infiniband/*/ports/*/counters/*err*
Side effects of the fix: Work on the cable takes the link down.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
"""

from typing import Any

from nodetune.api import RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import active

LIMITS = {
    "symbol_error": 1e-6,
    "port_rcv_errors": 1e-6,
    "packet_seq_err": 1e-5,
    "local_ack_timeout_err": 1e-5,
    "rnr_nak_retry_err": 1e-4,
    "implied_nak_seq_err": 1e-5,
}
"""Counter → errors per packet. Receivers that are not ready (RNR) are a sign of load before they are a fault."""
MIN_ERRORS = 1000


def observe(facts: FactsView) -> dict[str, str]:
    counters, hardware = facts["rdma.counters"], facts["rdma.hw_counters"]
    ports = [name for name in active(facts["rdma.ports"]) if name in counters]
    return {name: _errors({**counters[name], **hardware.get(name, {})}) for name in ports}


def _errors(counted: dict[str, Any]) -> str:
    packets = counted.get("port_rcv_packets", 0) + counted.get("port_xmit_packets", 0)
    bad = [name for name, limit in LIMITS.items() if counted.get(name, 0) > max(MIN_ERRORS, limit * packets)]
    return ", ".join(f"{name} {counted[name]:,}" for name in bad) + f" in {packets:,} packets" if bad else ""


def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
    """Name the RoCE links without flow control: what they lose is a sign of the network, not of a cable."""
    ports = facts["rdma.ports"]
    links = {ports[name]["netdev"] for name in subjects if ports[name]["link_layer"] == "Ethernet"}
    loose = [link for link in sorted(filter(None, links)) if _loose(facts, link)]
    return f"no flow control (neither PFC nor global pause) on {', '.join(loose)}" if loose else ""


def _loose(facts: FactsView, link: str) -> bool:
    """Return whether the link is known to have neither a priority with PFC nor global pause frames."""
    dcb, pause = facts["net.dcb"].get(link), facts["net.pause"].get(link)
    return dcb is not None and not dcb["pfc"] and pause is not None and not (pause["rx"] or pause["tx"])


CHECK = Check(
    needs=("rdma.ports", "rdma.counters", "rdma.hw_counters", "net.dcb", "net.pause"),
    observe=observe,
    cause=cause,
    accept=Empty("hardly any error"),
    applies=(RDMA,),
    remedy=manual(
        "Clear and watch: perfquery -R (InfiniBand), run traffic, read again. If symbol or receive errors grow, check "
        "cable, optics and port. If sequence or timeout errors grow on RoCE, the network drops packets: check PFC and "
        "ECN end to end (mlnx_qos -i LINK or dcb pfc show dev LINK, and the switch port): one lossless priority, the same "
        "on all hosts and switches."
    ),
    severity="medium",
    cost="hardware",
)

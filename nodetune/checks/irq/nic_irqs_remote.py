"""Interrupts of a network card go to CPUs of another NUMA node.

Why it matters: The CPU that takes the interrupt reads the card's descriptors and packets. From another node each of
these reads crosses the link between the sockets, which costs latency and bandwidth of every socket-based transfer:
storage over TCP, NCCL without RDMA, checkpoints. RDMA traffic itself raises few interrupts.
Confirm by hand: for i in /sys/class/net/eth0/device/msi_irqs/*; do cat /proc/irq/${i##*/}/effective_affinity_list; done
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or told to leave these alone. Changing
the number of channels, or taking the link down and up, makes new interrupts that start from the default.
Sources: https://docs.kernel.org/core-api/irq/irq-affinity.html ;
https://docs.kernel.org/networking/scaling.html ;
https://github.com/Irqbalance/irqbalance
"""

from nodetune.conditions import BARE_METAL, SEVERAL_NUMA_NODES
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import irq_affinity
from nodetune.view import View

TOLERATED = 10  # one in so many: cards have vectors for rare events, and irqbalance leaves those anywhere


def observe(facts: View) -> dict[str, object]:
    """Each card with more than a tenth of its interrupts elsewhere."""
    cards = [device for device in facts["irq.devices"].values() if device["kind"] == "nic" and "remote" in device]
    told = "{remote} of {irqs} elsewhere (they go to CPUs {cpus})"
    return {card["name"]: told.format(**card) if card["remote"] * TOLERATED > card["irqs"] else [] for card in cards}


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("interrupts on CPUs of the card's own node"),
    set="local",
    remedy=irq_affinity(),
    severity="medium",
)

"""NIC interrupts go to CPUs of another NUMA node.

Why it matters: The CPU that takes the interrupt reads the card's descriptors and packets. From another node, each of
these reads crosses the link between the sockets. This costs latency and bandwidth in every socket-based transfer:
storage over TCP, NCCL without RDMA, checkpoints. RDMA traffic itself raises few interrupts.
Confirm manually: for i in /sys/class/net/eth0/device/msi_irqs/*; do grep . /proc/irq/${i##*/}/*_affinity_list; done
(an idle interrupt stays on its old CPU until it next comes: then its smp_affinity_list counts)
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or configured to leave these alone.
Changing the number of channels, or taking the link down and up, creates new interrupts with the default affinity.
Sources: https://docs.kernel.org/core-api/irq/irq-affinity.html ;
https://docs.kernel.org/networking/scaling.html ;
https://github.com/Irqbalance/irqbalance
"""

from nodetune.api import BARE_METAL, SEVERAL_NUMA_NODES, Check, Empty, FactsView, irq_affinity

TOLERATED = 10  # one in ten may be remote: cards have vectors for rare events, which irqbalance does not place


def observe(facts: FactsView) -> dict[str, object]:
    """Return each card with more than a tenth of its interrupts on another node."""
    cards = [device for device in facts["irq.devices"].values() if device["kind"] == "nic" and "remote" in device]
    template = "{remote} of {irqs} on another node (on CPUs {cpus})"
    return {
        card["name"]: template.format(**card) if card["remote"] * TOLERATED > card["irqs"] else [] for card in cards
    }


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("interrupts on CPUs of the card's own node"),
    set="local",
    remedy=irq_affinity(),
    severity="medium",
    name="NIC interrupts",
)

"""All interrupts of a multi-queue NIC go to one CPU.

Why it matters: Queues let many CPUs process one card's traffic. If one CPU takes the interrupts of every queue, that
CPU becomes the limit, and other work on it stalls. This happens when irqbalance does not run, or when a script writes
one mask to all interrupts.
Confirm manually: grep eth0 /proc/interrupts | head
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or configured to leave these alone.
Sources: https://docs.kernel.org/networking/scaling.html ;
https://docs.kernel.org/core-api/irq/irq-affinity.html
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, irq_affinity

SEVERAL = 4  # with fewer vectors, a card has one queue and its management interrupts


def observe(facts: FactsView) -> dict[str, object]:
    """Return each card whose interrupts share one CPU although it has several local CPUs."""
    cards = [device for device in facts["irq.devices"].values() if device["kind"] == "nic" and "cpus" in device]
    return {card["name"]: f"all {card['irqs']} on CPU {card['cpus']}" if _crowded(card) else [] for card in cards}


def _crowded(card: Any) -> bool:
    return bool(card["irqs"] >= SEVERAL and card["cpu_count"] == 1 and card["local_count"] > 1)


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    accept=Empty("interrupts spread over several CPUs"),
    set="local",
    remedy=irq_affinity(),
    severity="medium",
    name="NIC interrupts",
)

"""All interrupts of a network card with several queues go to one CPU.

Why it matters: Queues let many CPUs work on one card's traffic. With every queue's interrupt on the same CPU that CPU
is the limit, and whatever else runs there stalls. It is what is left when irqbalance does not run, or when a script
writes one mask to all interrupts.
Confirm by hand: grep eth0 /proc/interrupts | head
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or told to leave these alone.
Sources: https://docs.kernel.org/networking/scaling.html ;
https://docs.kernel.org/core-api/irq/irq-affinity.html
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import irq_affinity
from nodetune.view import View

SEVERAL = 4  # fewer vectors than that: one queue and its administration


def observe(facts: View) -> dict[str, object]:
    """Each card whose interrupts share one CPU though it has others near it."""
    cards = [device for device in facts["irq.devices"].values() if device["kind"] == "nic" and "cpus" in device]
    return {card["name"]: f"all {card['irqs']} on CPU {card['cpus']}" if _crowded(card) else [] for card in cards}


def _crowded(card: Any) -> bool:
    return bool(card["irqs"] >= SEVERAL and card["cpu_count"] == 1 and card["local_count"] > 1)


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    accept=Empty("interrupts spread over CPUs"),
    set="local",
    remedy=irq_affinity(),
    severity="medium",
)

"""Receive packet steering is on for a card that has queues enough.

Why it matters: RPS hands each packet from the CPU that took the interrupt to another one, with an interrupt between
CPUs. That helps a card with one queue. Where the card itself spreads packets over many queues it only adds work, and
moves it away from the CPUs near the card.
Confirm by hand: grep . /sys/class/net/*/queues/rx-*/rps_cpus | grep -v ':[0,]*$' | head
Side effects of the fix: Traffic of one flow stays on one CPU.
Sources: https://docs.kernel.org/networking/scaling.html#rps-receive-packet-steering
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

ENOUGH = 8


def observe(facts: View) -> dict[str, object]:
    """Each card with many receive queues of which some are steered."""
    told = "on for {steered} of {queues} queues"
    return {
        name: told.format(**card) if card["steered"] and card["queues"] >= ENOUGH else []
        for name, card in facts["irq.rps"].items()
    }


CHECK = Check(
    observe=observe,
    needs=("irq.rps",),
    applies=(BARE_METAL,),
    accept=Empty(f"off where a card has {ENOUGH} queues or more"),
    remedy=manual(
        "for f in /sys/class/net/IF/queues/rx-*/rps_cpus; do echo 0 > $f; done, and remove what sets it: grep -rl "
        "rps_cpus /etc/udev/rules.d /etc/rc.local /etc/systemd/system /etc/networkd-dispatcher /etc/NetworkManager."
    ),
    severity="low",
)

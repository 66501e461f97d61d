"""Receive packet steering (RPS) is on for a multi-queue NIC.

Why it matters: RPS passes each packet from the CPU that took the interrupt to another CPU, with an inter-processor
interrupt. That helps a card with one queue. Where the card itself spreads packets over many queues, RPS only adds work
and moves it away from the CPUs near the card.
Confirm manually: grep . /sys/class/net/*/queues/rx-*/rps_cpus | grep -v ':[0,]*$' | head
Side effects of the fix: Traffic of one flow stays on one CPU.
Sources: https://docs.kernel.org/networking/scaling.html#rps-receive-packet-steering
"""

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual

ENOUGH = 8


def observe(facts: FactsView) -> dict[str, object]:
    """Return each card that has many receive queues and steers some of them."""
    template = "on for {steered} of {queues} queues"
    return {
        name: template.format(**card) if card["steered"] and card["queues"] >= ENOUGH else []
        for name, card in facts["irq.rps"].items()
    }


CHECK = Check(
    observe=observe,
    needs=("irq.rps",),
    applies=(BARE_METAL,),
    accept=Empty(f"off where a card has {ENOUGH} queues or more"),
    remedy=manual(
        "Run for f in /sys/class/net/IF/queues/rx-*/rps_cpus; do echo 0 > $f; done, and remove what sets it: grep -rl "
        "rps_cpus /etc/udev/rules.d /etc/rc.local /etc/systemd/system /etc/networkd-dispatcher /etc/NetworkManager."
    ),
    severity="low",
)

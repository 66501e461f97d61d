"""Irqbalance runs beside something that sets interrupt affinities by itself.

Why it matters: irqbalance looks every ten seconds and moves interrupts as it sees fit, so what a boot script, a unit or
the network vendor's tuner has set lasts seconds. Which of the two a node follows then depends on timing, and nodes that
are set up alike behave differently. Either one is fine; both are not.
Confirm by hand: systemctl is-active irqbalance; grep -rlE 'smp_affinity|set_irq_affinity' /etc/systemd/system /etc/rc.local
Side effects of the fix: Without irqbalance, interrupts that nobody places stay on the CPU where they began.
Sources: https://github.com/Irqbalance/irqbalance ;
https://docs.kernel.org/core-api/irq/irq-affinity.html
"""

import re
from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

LEAVES_SOME_ALONE = re.compile(r"--?(banirq|banmod|policyscript|i|m|l)\b")


def observe(facts: View) -> Any:
    """The files that place interrupts while irqbalance runs without being told of it."""
    settings = facts.get("irq.irqbalance", {})
    running = facts.get("services.irqbalance", {}).get("active") == "active"
    if not running or LEAVES_SOME_ALONE.search(settings.get("options", "")):
        return []
    return dict.fromkeys(facts["irq.static_affinity"], "places interrupts, irqbalance moves them") or []


CHECK = Check(
    observe=observe,
    needs=("services.irqbalance", "irq.irqbalance", "irq.static_affinity"),
    accept=Empty("irqbalance, or static affinities"),
    remedy=manual(
        "To keep the static affinities: systemctl disable --now irqbalance, or name the interrupts to it (--banirq=N or "
        "--banmod=MODULE in the arguments of /etc/default/irqbalance or /etc/sysconfig/irqbalance). To keep irqbalance: "
        "disable what the file named starts (for MLNX_OFED: RUN_AFFINITY_TUNER=no)."
    ),
    severity="medium",
)

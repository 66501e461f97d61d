"""irqbalance runs along with static interrupt affinities.

Why it matters: irqbalance runs every ten seconds and moves interrupts by its own rules. Affinities set by a boot
script, a unit or the network vendor's tuner last only seconds. Timing decides which of the two wins, so nodes with the
same configuration behave differently. Use one of them, not both.
Confirm manually: systemctl is-active irqbalance; grep -rlE 'smp_affinity|set_irq_affinity' /etc/systemd/system /etc/rc.local
Side effects of the fix: Without irqbalance, interrupts that nothing else places stay on the CPU where they started.
Sources: https://github.com/Irqbalance/irqbalance ;
https://docs.kernel.org/core-api/irq/irq-affinity.html
"""

import re
from typing import Any

from nodetune.api import Check, Empty, FactsView, manual

LEAVES_SOME_ALONE = re.compile(r"--?(banirq|banmod|policyscript|i|m|l)\b")


def observe(facts: FactsView) -> Any:
    """Return the files that place interrupts while irqbalance is not configured to leave any alone."""
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
        "To keep the static affinities: systemctl disable --now irqbalance, or exclude the interrupts (--banirq=N or "
        "--banmod=MODULE in the arguments of /etc/default/irqbalance or /etc/sysconfig/irqbalance). To keep irqbalance: "
        "disable what the named file starts (for MLNX_OFED: RUN_AFFINITY_TUNER=no)."
    ),
    severity="medium",
)

"""A memory module has frequent corrected errors.

Why it matters: A single corrected error is normal. A steady stream means a failing cell, row or contact, often some time
before the first uncorrectable error. Each reported error also interrupts a CPU. mcelog warns about a module at ten
errors a day.
Confirm manually: grep -H . /sys/devices/system/edac/mc/mc*/*/dimm_ce_count
Side effects of the fix: The node is out of service while the module is reseated or replaced.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html ;
https://github.com/andikleen/mcelog (mcelog.conf, ce-error-threshold)
"""

from __future__ import annotations

from nodetune.api import AtMost, Check, FactsView, manual

DAY = 86400


def errors_a_day(facts: FactsView) -> dict[str, float]:
    """Return the average since the counters started. Less than a day counts as one day."""
    days = max(1.0, facts.get("memory.edac.seconds", DAY) / DAY)
    return {module: round(count / days, 1) for module, count in facts["memory.edac.corrected"].items()}


CHECK = Check(
    observe=errors_a_day,
    needs=("memory.edac.corrected", "memory.edac.seconds"),
    accept=AtMost(10),
    unit="a day",
    remedy=manual(
        "Monitor the errors with rasdaemon (ras-mc-ctl --errors). Plan to reseat the named module, then to replace it."
    ),
    severity="medium",
    cost="hardware",
)

"""A memory module of the host needs its errors corrected all the time.

Why it matters: A stray corrected error is normal. A steady stream means a failing cell, row or contact, often some time
before the first error that cannot be corrected; and each one that is reported interrupts a CPU. Ten a day is where
mcelog warns of a module.
Confirm by hand: grep -H . /sys/devices/system/edac/mc/mc*/*/dimm_ce_count
Side effects of the fix: The node is out of service while the module is reseated or replaced.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html ;
https://github.com/andikleen/mcelog (mcelog.conf, ce-error-threshold)
"""

from __future__ import annotations

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

DAY = 86400


def errors_a_day(facts: View) -> dict[str, float]:
    """The average since the counters began; less than a day counts as one."""
    days = max(1.0, facts.get("memory.edac.seconds", DAY) / DAY)
    return {module: round(count / days, 1) for module, count in facts["memory.edac.corrected"].items()}


CHECK = Check(
    observe=errors_a_day,
    needs=("memory.edac.corrected", "memory.edac.seconds"),
    accept=AtMost(10),
    unit="a day",
    remedy=manual(
        "Watch it with rasdaemon (ras-mc-ctl --errors); plan to reseat, then to replace the module named here"
    ),
    severity="medium",
)

"""Several services set the system clock.

Why it matters: Each service corrects what it takes for the error of the oscillator and undoes the other's correction.
The clock swings instead of settling.
Confirm manually: systemctl is-active chrony chronyd ntp ntpd ntpsec openntpd systemd-timesyncd
Side effects of the fix: None while one of them stays.
Sources: https://chrony-project.org/faq.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd-timesyncd.service.html
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.services._units import TIME_SERVICES, running


def observe(facts: FactsView) -> list[str]:
    found = running(facts, TIME_SERVICES)
    return found if len(found) > 1 else []


CHECK = Check(
    needs=tuple(f"services.{name}" for name in TIME_SERVICES),
    observe=observe,
    accept=Empty("at most one"),
    remedy=manual("Keep one (chrony suits servers). For each of the others: systemctl disable --now NAME"),
    severity="low",
    name="time services",
)

"""Several services set the clock at once.

Why it matters: Each corrects what it takes for the error of the oscillator and undoes the other's correction; the
clock then swings instead of settling.
Confirm by hand: systemctl is-active chrony chronyd ntp ntpd ntpsec openntpd systemd-timesyncd
Side effects of the fix: None while one of them stays.
Sources: https://chrony-project.org/faq.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd-timesyncd.service.html
"""

from nodetune.checks.services._units import running
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

SERVICES = ("chrony", "chronyd", "ntp", "ntpd", "ntpsec", "openntpd", "systemd-timesyncd")


def observe(facts: View) -> list[str]:
    found = running(facts, SERVICES)
    return found if len(found) > 1 else []


CHECK = Check(
    needs=tuple(f"services.{name}" for name in SERVICES),
    observe=observe,
    accept=Empty("at most one"),
    remedy=manual("Keep one (chrony suits servers); for each of the others: systemctl disable --now NAME"),
    severity="low",
)

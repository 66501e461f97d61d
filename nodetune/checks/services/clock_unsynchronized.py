"""The system clock is not synchronized.

Why it matters: Logs and traces of several nodes do not line up. Kerberos, munge (Slurm) and TLS refuse messages from
another time. Tools such as make find files from the future on shared storage. In the first 10 minutes after a boot, a
time service that runs is not judged: it first compares several answers.
Confirm manually: timedatectl show -p NTPSynchronized; chronyc tracking
Side effects of the fix: A clock that is far off may be stepped once.
Sources: https://chrony-project.org/faq.html ; https://gitlab.com/NTPsec/ntpsec/issues/347 ; https://man7.org/linux/man-pages/man2/adjtimex.2.html
"""

from nodetune.api import NOT_CONTAINER, Check, Equals, FactAbsentError, FactsView, manual
from nodetune.checks.services._units import TIME_SERVICES, running

SETTLED = 10 * 60
"""Seconds after a boot."""


def observe(facts: FactsView) -> str:
    """Return the kernel's flag, or chrony's report where chrony does not set that flag."""
    if facts["services.time_sync"]["synchronized"]:
        return "synchronized"
    if facts.readable("host.uptime_s", SETTLED) < SETTLED and running(facts, TIME_SERVICES):
        raise FactAbsentError(
            "the host booted less than 10 minutes ago, and its time service may not have set the clock yet"
        )
    return "not synchronized"


CHECK = Check(
    needs=("services.time_sync", "host.uptime_s", *(f"services.{name}" for name in TIME_SERVICES)),
    observe=observe,
    accept=Equals("synchronized"),
    applies=(NOT_CONTAINER,),
    remedy=manual(
        "Debian and Ubuntu: apt install chrony; RHEL: dnf install chrony. List the site's servers in chrony.conf, "
        "then: systemctl enable --now chrony (chronyd on RHEL), and check with: chronyc tracking"
    ),
    severity="medium",
    name="system clock",
)

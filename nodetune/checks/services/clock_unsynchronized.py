"""The system clock is not synchronized.

Why it matters: Logs and traces of several nodes do not line up. Kerberos, munge (Slurm) and TLS refuse messages from
another time. Tools such as make find files from the future on shared storage.
Confirm manually: timedatectl show -p NTPSynchronized; chronyc tracking
Side effects of the fix: A clock that is far off may be stepped once.
Sources: https://chrony-project.org/faq.html ; https://man7.org/linux/man-pages/man2/adjtimex.2.html
"""

from nodetune.api import NOT_CONTAINER, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str:
    """Return the kernel's flag, or chrony's report where chrony does not set that flag."""
    return "synchronized" if facts["services.time_sync"]["synchronized"] else "not synchronized"


CHECK = Check(
    needs=("services.time_sync",),
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

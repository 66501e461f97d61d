"""Nothing keeps the clock in step.

Why it matters: Logs and traces of several nodes cannot be laid side by side, Kerberos, munge (Slurm) and TLS refuse
messages from another time, and make-like tools see files from the future on shared storage.
Confirm by hand: timedatectl show -p NTPSynchronized; chronyc tracking
Side effects of the fix: A clock that is far off may be stepped once.
Sources: https://chrony-project.org/faq.html ; https://man7.org/linux/man-pages/man2/adjtimex.2.html
"""

from nodetune.conditions import NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """The kernel's flag, or chrony's own word where it does not keep that flag."""
    return "in step" if facts["services.time_sync"]["synchronized"] else "not in step"


CHECK = Check(
    needs=("services.time_sync",),
    observe=observe,
    accept=Equals("in step"),
    applies=(NOT_CONTAINER,),
    remedy=manual(
        "Debian and Ubuntu: apt install chrony; RHEL: dnf install chrony; name the site's servers in chrony.conf, then: "
        "systemctl enable --now chrony (chronyd on RHEL), and look at: chronyc tracking"
    ),
    severity="medium",
)

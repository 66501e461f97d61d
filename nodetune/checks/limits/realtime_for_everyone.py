"""Every login may run threads at realtime priority.

Why it matters: A realtime thread that spins keeps its core from everything else, the kernel's own threads for
networking, RDMA and storage included. GPU work gains nothing from it; grant it to the users of a service that does.
Confirm by hand: ulimit -r; grep -r rtprio /etc/security/limits.conf /etc/security/limits.d
Side effects of the fix: Programs that ask for realtime scheduling run at normal priority or refuse to start.
Sources: https://man7.org/linux/man-pages/man7/sched.7.html
"""

from typing import Any

from nodetune.checks.limits._sides import SESSIONS, seen
from nodetune.expect import Equals
from nodetune.model import Check, Fact
from nodetune.remedies import limit
from nodetune.view import View


def observe(facts: View) -> Fact | dict[str, Any]:
    return seen(facts, "rtprio", "hard", (SESSIONS,))


CHECK = Check(
    needs=("limits.rtprio",),
    observe=observe,
    accept=Equals(0),
    set=0,
    remedy=limit("rtprio"),
    severity="info",
)

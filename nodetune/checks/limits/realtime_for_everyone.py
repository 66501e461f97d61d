"""Every login may use realtime priority (rtprio).

Why it matters: A realtime thread that spins blocks everything else on its core, including the kernel's own threads for
networking, RDMA and storage. GPU work gains nothing from realtime priority. Grant it only to the users of a service
that needs it.
Confirm manually: ulimit -r; grep -r rtprio /etc/security/limits.conf /etc/security/limits.d
Side effects of the fix: Programs that request realtime scheduling run at normal priority or refuse to start.
Sources: https://man7.org/linux/man-pages/man7/sched.7.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Check, Equals, Fact, FactsView, limit
from nodetune.checks.shared.limit_sides import SESSIONS, cause, limits_for


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    return limits_for(facts, "rtprio", "hard", (SESSIONS,))


CHECK = Check(
    needs=("limits.rtprio",),
    observe=observe,
    cause=cause("rtprio"),
    accept=Equals(0),
    set=0,
    remedy=limit("rtprio"),
    severity="info",
)

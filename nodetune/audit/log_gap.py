"""Say where the kernel log has lost a part that a verdict needs. What nobody can see does not pass."""

from __future__ import annotations

from nodetune.api.facts_view import FactsView
from nodetune.api.model import Check
from nodetune.foundation import text

LOG, UPTIME = "xid.log", "host.uptime_s"
FIRST_SECONDS = 60
"""A log may begin that late and be whole: the first lines of a boot are about memory and buses."""
EMPTY, NOT_SEEN = "the kernel log is empty", "not seen since"


def is_lost(reason: str) -> bool:
    """Return whether nobody can judge this any more, by the reason why it is unknown: no right and no tool reads the lost part."""
    return reason.startswith((EMPTY, NOT_SEEN))


def needs(check: Check) -> tuple[str, ...]:
    return (LOG, UPTIME) if check.log else ()


def reason(check: Check, view: FactsView) -> str:
    """Return why nothing in the log proves nothing; empty if the log reaches back far enough, or nobody read where it begins."""
    log = view.readable(LOG) if check.log else None
    if not isinstance(log, dict) or "since_s" not in log:
        return ""
    begins = log["since_s"]
    if begins is None:
        return EMPTY
    uptime = view.readable(UPTIME)
    reaches = FIRST_SECONDS if uptime is None else max(FIRST_SECONDS, uptime - check.log)
    return f"{NOT_SEEN} {text.span(begins)} after the boot, where the kernel log begins" if begins > reaches else ""

"""The end of an audit for people at a terminal: waivers without effect, whose findings count."""

from collections.abc import Sequence
from typing import TextIO

from nodetune.audit.idle_waivers import IdleWaiver
from nodetune.foundation import text
from nodetune.report.text.host_names import named
from nodetune.report.text.lines import Lines, screen

MAX_LINES = 5
TITLE = 10


def write(found: Sequence[IdleWaiver], validate: str, stream: TextIO) -> None:
    """Print a line for each, and the command that names its place in the site file."""
    if not found:
        return
    out = Lines(screen(stream))
    out.gap()
    out.line(("WAIVERS WITHOUT EFFECT", "bold"))
    for each in found[:MAX_LINES]:
        title, told = _told(each)
        out.line((f"{title:<{TITLE}}", "yellow"), (each.waiver.id, "bold"), f"  {told}", indent="  ", hang=" " * TITLE)
    if len(found) > MAX_LINES:
        out.line((f"… and {text.count(len(found) - MAX_LINES, 'other')}", "dim"), indent="  ")
    out.whole((f"{'to do':<{TITLE}}", "dim"), (validate, "green"), indent="  ")


def _told(each: IdleWaiver) -> tuple[str, str]:
    waiver = each.waiver
    if each.ended:
        return "ended", f"on {waiver.until} ({text.plain(waiver.owner)}): its finding counts on {named(each.hosts, 48)}"
    who = waiver.hosts or f"group {', '.join(waiver.groups)}"
    return "no host", f"{text.plain(who)} is not among the hosts audited; it fails on {named(each.hosts, 48)}"

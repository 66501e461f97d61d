"""Timers wake up jobs that scan disks or files.

Why it matters: Each of them reads whole file systems or disks on every node, at a time of its own: a collective waits for the
node that is disturbed. plocate walks all local files each night, man-db indexes manual pages, mdcheck reads all disks of an
array. fstrim is not among them: file systems on flash need it (scratch-discards-at-once).
Confirm manually: systemctl list-timers
Side effects of the fix: locate and man -k do not find new files. Arrays and file systems are checked only when an admin does
it. A timer whose time you set by a drop-in in /etc passes.
Sources: https://dl.acm.org/doi/10.1145/1048935.1050204 ; https://man7.org/linux/man-pages/man5/systemd.timer.5.html ;
https://plocate.sesse.net/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, service
from nodetune.checks.services._units import running

TIMERS = {
    "e2scrub_all.timer": "checks ext4 on logical volumes",
    "man-db.timer": "indexes manual pages",
    "mdcheck_start.timer": "reads all disks of software RAID",
    "mlocate-updatedb.timer": "walks all local files",
    "plocate-updatedb.timer": "walks all local files",
    "sysstat-collect.timer": "counts all devices, every ten minutes",
}


OWN = "/etc/systemd/system/"


def observe(facts: FactsView) -> dict[str, str]:
    """Return the names of active timers, except those whose time someone has set here. A site file may accept each."""
    return {name: name for name in running(facts, TIMERS) if not _is_set_here(facts[f"services.{name}"])}


def _is_set_here(timer: Mapping[str, Any]) -> bool:
    return any(path.startswith(OWN) for path in timer.get("drop_ins", ()))


def cause(facts: FactsView, subjects: Iterable[str]) -> str:  # noqa: ARG001
    """Return what they do."""
    return "; ".join(f"{name}: {TIMERS[name]}" for name in subjects)


CHECK = Check(
    needs=tuple(f"services.{name}" for name in TIMERS),
    observe=observe,
    cause=cause,
    accept=Empty("no timer that scans"),
    absent="pass",
    applies=(GPU_ON_PCI,),
    remedy=service(
        steps="For each that this site does not need: systemctl mask --now NAME. Or have apply stop and mask them: the site file "
        "says accept: {one_of: [man-db.timer]} for those that stay, and set: masked. To keep one, have it run on all nodes at once, when no job waits: "
        "systemctl edit NAME, with OnCalendar= (empty), OnCalendar=Sun 06:00 and RandomizedDelaySec=0 under [Timer]."
    ),
    severity="info",
    name="background timers",
)

"""The running kernel has a fault that damages data.

Why it matters: These releases were withdrawn or fixed within days. Whoever runs one should not keep checkpoints on the
file system in question until the kernel is replaced and the file system is checked.
Confirm by hand: cat /proc/version /proc/version_signature
Side effects of the fix: A reboot into another kernel; a file system check afterwards.
Sources: https://bugs.debian.org/cgi-bin/bugreport.cgi?bug=1057843 (6.1.64 and 6.1.65) ;
https://www.geekersdigest.com/debian-12-4-released-after-fatal-12-3-release/
"""

from __future__ import annotations

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

FAULTS = (((6, 1, 64), (6, 1, 65), "ext4 writes with O_DIRECT and O_SYNC end up in the wrong place (fixed in 6.1.66)"),)
"""First and last release with the fault (upstream numbers), and what it does."""


def fault(facts: View) -> str:
    release = tuple(int(part) for part in facts["kernel.upstream"].split("."))
    return next((text for first, last, text in FAULTS if first <= release <= last), "")


CHECK = Check(
    observe=fault,
    needs=("kernel.upstream",),
    accept=Empty("a kernel without known faults"),
    remedy=manual(
        "Install the distribution's current kernel, reboot into it, and check the file systems (fsck, xfs_repair -n)"
    ),
    severity="high",
)

"""The running kernel has a data corruption bug.

Why it matters: The affected releases were withdrawn or fixed within days. On such a kernel, do not keep checkpoints on
the affected file system until the kernel is replaced and the file system is checked.
Healthy exception: The version of a vendor's kernel does not show its fixes.
Confirm manually: cat /proc/version /proc/version_signature
Side effects of the fix: The node reboots into another kernel and needs a file system check afterwards.
Sources: https://bugs.debian.org/cgi-bin/bugreport.cgi?bug=1057843 (6.1.64 and 6.1.65) ;
https://www.geekersdigest.com/debian-12-4-released-after-fatal-12-3-release/
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactsView, manual

FAULTS = (
    ((6, 1, 64), (6, 1, 65), "ext4 writes with O_DIRECT and O_SYNC are written to the wrong place (fixed in 6.1.66)"),
)
"""First and last release with the bug (upstream numbers), and its effect."""


def fault(facts: FactsView) -> str:
    release = tuple(int(part) for part in facts["kernel.upstream"].split("."))
    return next((text for first, last, text in FAULTS if first <= release <= last), "")


CHECK = Check(
    observe=fault,
    needs=("kernel.upstream",),
    accept=Empty("a kernel without known bugs"),
    remedy=manual(
        "Install the distribution's current kernel, reboot into it, and check the file systems (fsck, xfs_repair -n)"
    ),
    severity="high",
    name="kernel",
)

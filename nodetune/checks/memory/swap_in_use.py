"""Pages have been swapped out.

Why it matters: Reading a page back from disk takes about a thousand times as long as reading memory. Some of what is
out is cold and harmless. More than a little means that memory ran short at some time since the node started, if only for
the page cache: a job was larger than the node, or something leaks.
Confirm by hand: grep VmSwap /proc/[0-9]*/status | sort -k 2 -n | tail
Side effects of the fix: Reading the pages back takes disk time and needs that much free memory.
Sources: https://docs.kernel.org/filesystems/proc.html (VmSwap, SwapFree)
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def used(facts: View) -> int:
    total: int = facts["memory.swap_total_kb"]
    free: int = facts["memory.swap_free_kb"]
    return total - free


CHECK = Check(
    observe=used,
    needs=("memory.swap_total_kb", "memory.swap_free_kb"),
    accept=AtMost(256 << 10),
    unit="KiB",
    remedy=manual(
        "Find whose pages they are: grep VmSwap /proc/[0-9]*/status | sort -k 2 -n | tail. "
        "On an idle node with more free memory than is swapped: swapoff -a && swapon -a"
    ),
    severity="low",
)

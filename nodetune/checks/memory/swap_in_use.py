"""Swap is in use.

Why it matters: Reading a page back from disk takes about a thousand times as long as reading memory. Some swapped-out
pages are cold and harmless. More than a little means that memory ran short at some time since the node started, if only
for the page cache: a job was larger than the node, or something leaks.
Confirm manually: grep VmSwap /proc/[0-9]*/status | sort -k 2 -n | tail
Side effects of the fix: Reading the pages back takes disk time and needs that much free memory.
Sources: https://docs.kernel.org/filesystems/proc.html (VmSwap, SwapFree)
"""

from nodetune.api import AtMost, Check, FactsView, manual
from nodetune.checks.memory._swap import devices


def used(facts: FactsView) -> int:
    total: int = facts["memory.swap_total_kb"]
    free: int = facts["memory.swap_free_kb"]
    return total - free


CHECK = Check(
    observe=used,
    needs=("memory.swap_total_kb", "memory.swap_free_kb", "memory.swaps"),
    cause=devices,
    accept=AtMost(256 << 10),
    unit="KiB",
    remedy=manual(
        "Find the processes that own the pages: grep VmSwap /proc/[0-9]*/status | sort -k 2 -n | tail. "
        "On an idle node with more free memory than is swapped: swapoff -a && swapon -a"
    ),
    severity="low",
    name="swap in use",
)

"""Swap space is too large.

Why it matters: When a job needs more memory than the node has, a few GiB of swap make room for cold pages. With tens of
GiB, the node thrashes for minutes or hours instead of failing, while every other rank waits for it. Pinned GPU buffers
cannot be swapped, so the pages that go belong to the programs that feed the GPUs. A kubelet refuses to start with swap
unless it is configured to tolerate it. Swap that is off now and large at the next boot, because fstab still names it,
counts.
Confirm manually: swapon --show
Side effects of the fix: Turning swap off reads every used page back. This takes time and may run out of memory: do it
on an idle node.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html ;
https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory
"""

from nodetune.api import AtMost, Check, FactsView, swap_off
from nodetune.checks.memory._swap import devices

MOST_KB = 8 << 20


def observe(facts: FactsView) -> int | dict[str, int]:
    """Return the size of all swap; if only that of the next boot is too large, this with the lines that decide."""
    now: int = facts["memory.swap_total_kb"]
    active = facts.readable("memory.swaps", {})
    added = {path: each for path, each in facts.readable("memory.swap_in_fstab", {}).items() if path not in active}
    later = now + sum(each["size_kb"] or 0 for each in added.values())
    if now > MOST_KB or later <= MOST_KB:
        return now
    lines = ", ".join(f"{each['file']} line {each['line']}" for each in added.values())
    return {f"next boot ({lines})": later}


CHECK = Check(
    needs=("memory.swap_total_kb", "memory.swaps", "memory.swap_in_fstab"),
    observe=observe,
    cause=devices,
    accept=AtMost(MOST_KB),
    set=0,
    unit="KiB",
    remedy=swap_off(),
    severity="medium",
)

"""Free memory is too fragmented for huge pages.

Why it matters: Huge pages, large DMA buffers and the driver's own allocations need contiguous free memory. If plenty is
free but nearly all of it in small pieces, each of them waits while the kernel moves pages, or does without. The usual
cause is a long uptime with kernel memory scattered everywhere.
Confirm manually: cat /proc/buddyinfo (the last columns are the large blocks)
Side effects of the fix: Compaction takes CPU time and stops programs for moments. Run it on an idle node.
Sources: https://docs.kernel.org/filesystems/proc.html (buddyinfo) ;
https://docs.kernel.org/admin-guide/sysctl/vm.html#compact-memory
"""

from __future__ import annotations

from nodetune.api import Absent, AtLeast, Check, FactsView, Value, manual


def percent_in_huge_blocks(facts: FactsView) -> dict[str, Value | Absent]:
    """Return the share per node. A node with less than a twentieth of all memory free has a full page cache: skip it."""
    enough = facts["memory.total_kb"] // 20
    return {
        node: Value(100 * blocks["huge_kb"] // blocks["free_kb"])
        if blocks["free_kb"] >= enough
        else Absent("too little free memory to measure fragmentation")
        for node, blocks in facts["memory.free_blocks"].items()
    }


CHECK = Check(
    observe=percent_in_huge_blocks,
    needs=("memory.free_blocks", "memory.total_kb"),
    accept=AtLeast(10),
    unit="% of free memory",
    remedy=manual("On an idle node: echo 1 > /proc/sys/vm/compact_memory. If that does not help, reboot."),
    severity="low",
)

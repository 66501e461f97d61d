"""Free memory is in pieces too small for huge pages.

Why it matters: Huge pages, large DMA buffers and the driver's own allocations need free memory in one piece. When
plenty is free but nearly all of it in small pieces, each of them waits while the kernel moves pages, or goes without.
A long uptime with kernel memory scattered everywhere is the usual reason.
Confirm by hand: cat /proc/buddyinfo (the last columns are the large blocks)
Side effects of the fix: Compacting takes CPU time and stops programs for moments: do it on an idle node.
Sources: https://docs.kernel.org/filesystems/proc.html (buddyinfo) ;
https://docs.kernel.org/admin-guide/sysctl/vm.html#compact-memory
"""

from __future__ import annotations

from nodetune.expect import AtLeast
from nodetune.model import Absent, Check, Value
from nodetune.remedies import manual
from nodetune.view import View


def percent_in_huge_blocks(facts: View) -> dict[str, Value | Absent]:
    """Judged only where a node has a twentieth of all memory free: less is what a full page cache leaves."""
    enough = facts["memory.total_kb"] // 20
    return {
        node: Value(100 * blocks["huge_kb"] // blocks["free_kb"])
        if blocks["free_kb"] >= enough
        else Absent("too little free to tell")
        for node, blocks in facts["memory.free_blocks"].items()
    }


CHECK = Check(
    observe=percent_in_huge_blocks,
    needs=("memory.free_blocks", "memory.total_kb"),
    accept=AtLeast(10),
    unit="% of free memory",
    remedy=manual("On an idle node: echo 1 > /proc/sys/vm/compact_memory. If that does not help: reboot"),
    severity="low",
)

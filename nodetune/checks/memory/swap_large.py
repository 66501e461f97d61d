"""Swap space is too large.

Why it matters: When a job needs more memory than the node has, a few GiB of swap make room for cold pages. With tens of
GiB, the node thrashes for minutes or hours instead of failing, while every other rank waits for it. Pinned GPU buffers
cannot be swapped, so the pages that go belong to the programs that feed the GPUs. A kubelet refuses to start with swap
unless it is configured to tolerate it.
Confirm manually: swapon --show
Side effects of the fix: Turning swap off reads every used page back. This takes time and may run out of memory: do it
on an idle node.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html ;
https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory
"""

from nodetune.api import AtMost, Check, swap_off
from nodetune.checks.memory._swap import devices

CHECK = Check(
    fact="memory.swap_total_kb",
    needs=("memory.swaps",),
    cause=devices,
    accept=AtMost(8 << 20),
    set=0,
    unit="KiB",
    remedy=swap_off(),
    severity="medium",
)

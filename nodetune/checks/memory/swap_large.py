"""There is so much swap that a node out of memory crawls instead of failing.

Why it matters: When a job needs more memory than there is, a few GiB of swap buy time for cold pages; tens of GiB let
the node thrash for minutes or hours while every other rank waits for it. Pinned buffers of GPUs cannot be swapped, so
the pages that go are those of the programs feeding them. A kubelet refuses to start with swap unless it is told to
tolerate it.
Confirm by hand: swapon --show
Side effects of the fix: Turning swap off reads every used page back, which takes time and may run out of memory: do it
on an idle node.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html ;
https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import swap_off

CHECK = Check(
    fact="memory.swap_total_kb",
    accept=AtMost(8 << 20),
    set=0,
    unit="KiB",
    remedy=swap_off(),
    severity="medium",
)

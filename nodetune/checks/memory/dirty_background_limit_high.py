"""vm.dirty_background_bytes or vm.dirty_background_ratio is too high.

Why it matters: The kernel starts background writeback only at this limit. At the default of 10 %, a node with 2 TiB
gathers 200 GiB before the first byte is written. The disk idles first and is overloaded later, so the write time of a
checkpoint becomes unpredictable. Starting after a few GiB keeps the storage busy throughout.
Confirm manually: sysctl vm.dirty_background_bytes vm.dirty_background_ratio
Side effects of the fix: Short-lived temporary files reach the disk more often.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-background-bytes
"""

from dataclasses import replace

from nodetune.api import AtMost, Check, sysctl
from nodetune.checks.memory import _dirty

CHECK = Check(
    observe=lambda facts: _dirty.limits(facts, "dirty_background", default_ratio=10),
    needs=_dirty.needs("dirty_background"),
    accept=AtMost(4 << 30),
    set=2 << 30,
    unit="bytes",
    applies=(_dirty.LARGE,),
    remedy=replace(sysctl("vm.dirty_background_bytes"), disruption="idle node"),  # programs that write now are held up
    part_of="dirty-limit-high",
    severity="info",
)

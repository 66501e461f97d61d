"""vm.dirty_bytes or vm.dirty_ratio is too high.

Why it matters: At the default of 20 %, a node with 2 TiB may have 400 GiB of data that is not on disk. At the limit,
every writer stops until enough is written. A checkpoint that seemed finished then stalls the next one for minutes, and
a crash loses all of the unwritten data. Set a limit in bytes that the storage can write in seconds.
Confirm manually: sysctl vm.dirty_bytes vm.dirty_ratio
Side effects of the fix: Writers are throttled earlier, those that run now at once. Checkpoint times show the real speed of the storage.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-bytes
"""

from dataclasses import replace

from nodetune.api import AtMost, Check, sysctl
from nodetune.checks.memory import _dirty

CHECK = Check(
    observe=lambda facts: _dirty.limits(facts, "dirty", default_ratio=20),
    needs=_dirty.needs("dirty"),
    accept=AtMost(16 << 30),
    set=8 << 30,
    unit="bytes",
    applies=(_dirty.LARGE,),
    remedy=replace(sysctl("vm.dirty_bytes"), disruption="idle node"),  # programs that write now are held up
    severity="info",
)

"""The kernel starts to write file data back only when a share of a very large memory is unwritten.

Why it matters: At the default of 10 % a node with 2 TiB gathers 200 GiB before the first byte is written in the
background. The disk idles first and is swamped later, and a checkpoint's write time becomes a matter of luck. Starting
after a few GiB keeps the storage busy all along.
Confirm by hand: sysctl vm.dirty_background_bytes vm.dirty_background_ratio
Side effects of the fix: Short-lived temporary files reach the disk more often.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-background-bytes
"""

from nodetune.checks.memory import _dirty
from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    observe=lambda facts: _dirty.limits(facts, "dirty_background", default_ratio=10),
    needs=_dirty.needs("dirty_background"),
    accept=AtMost(4 << 30),
    set=2 << 30,
    unit="bytes",
    applies=(_dirty.LARGE,),
    remedy=sysctl("vm.dirty_background_bytes"),
    severity="low",
)

"""Unwritten file data may pile up to a share of a very large memory.

Why it matters: At the default of 20 % a node with 2 TiB may hold 400 GiB of data that no disk has seen. When the limit
is reached every writer stops until enough is written, so a checkpoint that seemed finished stalls the next one for
minutes, and a crash loses all of it. A limit in bytes should be seconds of what the storage can write.
Confirm by hand: sysctl vm.dirty_bytes vm.dirty_ratio
Side effects of the fix: Writers are slowed down earlier; checkpoints show the real speed of the storage.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-bytes
"""

from nodetune.checks.memory import _dirty
from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    observe=lambda facts: _dirty.limits(facts, "dirty", default_ratio=20),
    needs=_dirty.needs("dirty"),
    accept=AtMost(16 << 30),
    set=8 << 30,
    unit="bytes",
    applies=(_dirty.LARGE,),
    remedy=sysctl("vm.dirty_bytes"),
    severity="low",
)

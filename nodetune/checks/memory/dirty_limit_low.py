"""vm.dirty_bytes or vm.dirty_ratio is too low.

Why it matters: At the limit every program that writes waits for the disk. With 4 MiB, writing through the page cache was 12 times
slower than without a limit (nodetune's `disk_buffered`), with 64 MiB 3 times; with 128 MiB a checkpoint with fsync lost nothing.
A few hundred MiB are enough for all storage, SUSE writes. A low limit of the background alone (vm.dirty_background_bytes) has
nobody wait.
Confirm manually: sysctl vm.dirty_bytes vm.dirty_ratio
Side effects of the fix: More data is in memory only, for as long as the storage takes to write it.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#dirty-bytes ; https://www.suse.com/support/kb/doc/?id=000017857
"""

from __future__ import annotations

from dataclasses import replace

from nodetune.api import AtLeast, Check, FactAbsentError, FactsView, Ref, When, sysctl
from nodetune.checks.memory import _dirty


def observe(facts: FactsView) -> int | dict[str, int]:
    """Return the limit now, and that of the next boot where tuned leaves it to files."""
    try:
        return _dirty.limits(facts, "dirty", default_ratio=20)
    except FactAbsentError:
        return _dirty.now(facts, "dirty")


CHECK = Check(
    observe=observe,
    needs=_dirty.needs("dirty"),
    accept=AtLeast(128 << 20),
    set=Ref("derived.dirty_bytes"),
    unit="bytes",
    applies=(When("memory.total_kb", AtLeast(14 << 20), "a few percent of so little memory are little"),),
    remedy=replace(sysctl("vm.dirty_bytes"), disruption="idle node"),  # as for dirty-limit-high
    severity="medium",
)

"""Swap is on where jobs train.

Why it matters: A rank whose pages are on a disk delays the collective, and with it all other ranks. A job that takes too much
memory ends at once without swap, and its message says why. Compressed memory (zram) is not counted: it is as fast as memory.
Also up to 8 GiB count here; swap-large reports more as a fault of its own.
Confirm manually: swapon --show
Side effects of the fix: Turning swap off reads every used page back, and takes zram with it. Do it on an idle node. Programs
that the kernel would have swapped out are ended instead.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html ;
https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory ;
https://docs.kernel.org/admin-guide/blockdev/zram.html
"""

from nodetune.api import AtMost, Check, FactsView, swap_off
from nodetune.checks.memory._swap import devices, on_disk


def observe(facts: FactsView) -> int:
    """Return the size of swap on disks and in files."""
    return sum(int(each["size_kb"]) for each in on_disk(facts).values())


CHECK = Check(
    needs=("memory.swaps",),
    observe=observe,
    cause=devices,
    accept=AtMost(0),
    set=0,
    unit="KiB",
    remedy=swap_off(),
    severity="low",
    part_of=("swap-large", "swap-in-use"),
)

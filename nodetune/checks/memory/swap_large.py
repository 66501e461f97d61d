"""Swap space is too large.

Why it matters: When a job needs more memory than the node has, a few GiB of swap make room for cold pages. With tens of
GiB, the node thrashes for minutes or hours instead of failing, while every other rank waits for it. Pinned GPU buffers
cannot be swapped, so the pages that go belong to the programs that feed the GPUs. A kubelet refuses to start with swap
unless it is configured to tolerate it. Swap that is off now and large at the next boot, because fstab still names it,
counts. Compressed memory (zram) does not.
Confirm manually: swapon --show
Side effects of the fix: Turning swap off reads every used page back. This takes time and may run out of memory: do it
on an idle node.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html ;
https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory
"""

from __future__ import annotations

from nodetune.api import AtMost, Check, FactsView, swap_off
from nodetune.checks.memory._swap import ZRAM, devices


def observe(facts: FactsView) -> int | dict[str, int]:
    """Return the size of swap on disks and in files; where fstab adds some at the next boot, also that with the lines."""
    active, named = facts.readable("memory.swaps", {}), facts.readable("memory.swap_in_fstab", {})
    now: int = facts["memory.swap_total_kb"] - sum(
        about["size_kb"] for path, about in active.items() if path.startswith(ZRAM)
    )
    added = [each for path, each in named.items() if path not in active and each["size_kb"]]
    lines = ", ".join(f"{each['file']} line {each['line']}" for each in added)
    return {"now": now, f"next boot ({lines})": now + sum(each["size_kb"] for each in added)} if added else now


CHECK = Check(
    needs=("memory.swap_total_kb", "memory.swaps", "memory.swap_in_fstab"),
    observe=observe,
    cause=devices,
    accept=AtMost(8 << 20),
    set=0,
    unit="KiB",
    remedy=swap_off(),
    severity="medium",
)

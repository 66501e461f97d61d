"""Counters that start again: how much one has grown meanwhile, and why it is lower. Pure.

Of two readings that are possible, the smaller one counts: errors are never made up.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Any

from nodetune.history import kinds

ANOTHER_PART, REBOOT, DRIVER, WRAPPED, CLEARED = "another part", "reboot", "driver loaded", "wrapped", "cleared"
BOOT_ID, DRIVER_VERSION = "host.boot_id", "gpu.driver_version"

NONE = (None, "")
"""The serial number of a part that is not there, or has none."""

SERIALS = {"gpu": ("gpu.serial", "gpu.uuid"), "block": ("block.serial",), "rdma": ("rdma.guid",)}
"""Family of facts → the facts that say which part each of their subjects is. GeForce cards have no serial number."""

UNPLACED = {
    "gpu.serial": ("pci",),
    "gpu.uuid": ("pci",),
    "block.serial": ("pci",),
    "rdma.guid": ("pci", "net"),
    "memory.serial": ("memory",),
}
"""Fact with serial numbers → families whose subjects have other names, so that any of them may be the exchanged part."""


def grown(leaf: str, before: int, now: int, changed: AbstractSet[str]) -> tuple[int, str]:
    """Return the growth of a counter, and why it started again (empty: it did not).

    `changed`: leaves of settings; of serial numbers, those of exchanged parts.
    """
    if is_another_part(leaf, changed):
        return 0, ANOTHER_PART
    if now >= before:
        return now - before, ""
    if not kinds.outlives_a_boot(leaf):
        if BOOT_ID in changed:
            return now, REBOOT
        if DRIVER_VERSION in changed:
            return now, DRIVER
    bits = next((each for each in (32, 64) if 0.9 * 2**each < before < 2**each and now < 0.1 * 2**each), 0)
    return (now + 2**bits - before, WRAPPED) if bits else (now, CLEARED)


def is_another_part(leaf: str, changed: AbstractSet[str]) -> bool:
    """Tell whether the part that a counter belongs to was exchanged, by its serial number."""
    fact, _, below = leaf.partition("/")
    subject = below.partition("/")[0]
    return any(f"{serial}/{subject}" in changed for serial in SERIALS.get(fact.partition(".")[0], ()) if below)


def is_exchange(before: object, after: object) -> bool:
    """Tell whether a serial number says another part than the last one known. A part that is lost may be back later."""
    return before not in NONE and after not in NONE and before != after


def replaced(changes: Iterable[tuple[int, str, Any, Any]]) -> set[str]:
    """Return the parts of a host that others have replaced, by the changes (time, leaf, before, after) of one kind of serial number.

    Where a part is only lost, those behind it move up: none of them is a new part.
    """
    known: dict[str, Any] = {}
    lost: set[str] = set()
    gone: set[str] = set()
    for _, together in groupby(sorted(changes, key=lambda each: each[:2]), key=lambda each: each[0]):
        moves = [(known.get(leaf) if before in NONE else before, after, leaf) for _, leaf, before, after in together]
        known |= {leaf: before if after in NONE else after for before, after, leaf in moves}
        left = {str(before) for before, _, _ in moves if before not in NONE}
        came = {str(after) for _, after, _ in moves if after not in NONE}
        new = came - left - lost
        lost = (lost | left) - came
        gone -= came
        over = {str(before) for before, after, _ in moves if str(before) in lost and str(after) in new}
        over = set(lost) if len(new) >= len(lost) else over
        gone |= over
        lost -= over
    return gone


def parts_of(leaf: str) -> tuple[str, str]:
    """Return the part that a series belongs to, and its family: where one of them was exchanged, its past begins again."""
    fact, _, below = leaf.partition("/")
    family = fact.partition(".")[0]
    return f"{family}/{below.partition('/')[0]}", family


def exchanged(serial: str) -> tuple[str, ...]:
    """Return the part, and the families, whose past begins again when this serial number changes."""
    return parts_of(serial)[0], *UNPLACED[serial.partition("/")[0]]


def is_serial(leaf: str) -> bool:
    """Tell whether a leaf says which part a subject is."""
    return leaf.partition("/")[0] in UNPLACED

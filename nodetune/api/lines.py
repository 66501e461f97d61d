"""One finding in one line: what it is about, and what that is → what it will be. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodetune.api.device import Device
from nodetune.api.devices import ADDRESS, Names, folded
from nodetune.api.model import DISRUPTIONS, Finding, Fix, FleetFinding, disruption_name
from nodetune.foundation import text

FREE = DISRUPTIONS[:2]
"""Disruptions that disturb no running work: everything above needs idle GPUs."""

LONGEST_NAMES = 32
"""Longest list of devices; more are counted."""

LONGEST_WANTED = 40
"""Longer texts say themselves what is wanted: it is not repeated."""

LONGEST = 400


@dataclass(frozen=True)
class Line:
    """`subject` is the device, service or setting, `text` what it is → what it will be."""

    subject: str
    text: str


def line(found: Finding, devices: Iterable[Device] = ()) -> Line:
    """Return the line of a failing finding. What another finding reports is left out."""
    whole = bool(found.part_of)
    left = {each: seen for each, seen in found.subjects.items() if whole or each not in found.reported_by}
    where, seen = _names(left, found, devices), _seen(left, found, devices)
    told = _change(found, seen)
    if found.name:
        alone = len(set(left.values())) == 1 and where != "now"
        subject, told = found.name, f"{told}, {where}" if alone else told
    elif left:
        subject = where
    elif isinstance(found, FleetFinding):
        subject = found.check.removeprefix("fleet-").replace("-", " ")
    else:
        subject, told = "host", f"{found.title}: {told}"
    return Line(text.plain(subject, LONGEST), text.plain(told + _disruption(found.fix), LONGEST))


def _names(seen: Mapping[str, str], found: Finding, devices: Iterable[Device]) -> str:
    """Return the devices of a finding: by all their names if they are few, counted if they are many."""
    if found.peers > 2 and len(seen) == found.peers and all(each.startswith("GPU") for each in seen):
        return f"all {len(seen)} GPUs"
    names = Names(devices)
    if len(seen) <= 2:
        return ", ".join(map(names.shown, seen))
    short = text.names(seen)
    if len(short) <= LONGEST_NAMES:
        return short
    first = next(iter(seen))
    known = names.device(first) or ADDRESS.fullmatch(first)
    return f"{len(seen)} devices" if known else f"{text.plain(first)} +{len(seen) - 1}"


def _seen(left: Mapping[str, str], found: Finding, devices: Iterable[Device]) -> str:
    values = set(left.values())
    if len(values) == 1:
        return values.pop()
    return folded(left, devices, found.repair) if left else found.observed


def _change(found: Finding, seen: str) -> str:
    others = found.peers - len(found.odd)
    if not found.fix and found.odd and found.usual and others and set(found.odd) <= set(found.subjects):
        return f"{seen}; {others} like it: {found.usual}"
    wanted = _target(found, found.fix) if found.fix else found.wanted
    longest = LONGEST_WANTED // 2 if found.repair else LONGEST_WANTED
    if wanted and seen and (found.fix or max(len(seen), len(wanted)) <= longest):
        return f"{seen} → {wanted}"
    return seen or found.title


def _target(found: Finding, fix: Fix) -> str:
    """Return what a fix sets. A value that is right and only lost at the next boot stays."""
    if isinstance(fix.value, Mapping):
        return found.wanted
    value = text.setting(fix.value, fix.unit)
    return f"{value} at every boot" if found.observed == f"{value} now" else value


def _disruption(fix: Fix | None) -> str:
    return f" ({disruption_name(fix.disruption)})" if fix and fix.disruption not in FREE else ""

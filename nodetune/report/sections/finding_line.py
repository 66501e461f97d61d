"""One finding in one line: what it is about, and what that is → what it will be. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodetune.api.model import FREE, Finding, Fix, FleetFinding, disruption_name
from nodetune.foundation import text

if TYPE_CHECKING:
    from nodetune.api.device import Device

MAX_NAMES = 32
"""Longest list of devices; more are counted."""

MAX_WANTED = 40
"""Longer texts say themselves what is wanted: it is not repeated."""

SHORT = 20
"""A value up to this length says too little without what is wanted."""

MAX_LENGTH = 400
LINE_OF_FILE = re.compile(r"/\S*/(\S+:\d+ .*)")


@dataclass(frozen=True)
class FindingLine:
    """`subject` is the device, service or setting, `text` what it is → what it will be, `short` the same in fewer words."""

    subject: str
    text: str
    short: str = ""


def line(found: Finding, devices: Iterable[Device] = ()) -> FindingLine:
    """Return the line of a failing finding. What another finding reports is left out."""
    left = {each: seen for each, seen in found.subjects.items() if found.part_of or each not in found.reported_by}
    where, seen = _names(left, found, devices) if left else "", _seen(left, found, devices)
    told, short = _change(found, seen)
    subject, before, after = found.name or "host", "", ""
    if found.name and found.fix and found.name not in where:
        after = f", {where}" if len(set(left.values())) == 1 and where != "now" else ""
    elif left:
        subject, before = where, f"{found.name}: " if found.name and not found.fix else ""
    elif isinstance(found, FleetFinding):
        subject = found.check.removeprefix("fleet-").replace("-", " ")
    elif not found.name:
        before = f"{found.title}: "
    words = subject, before + told + after, before + short
    return FindingLine(*(text.plain(each, MAX_LENGTH) for each in words))


def _names(seen: Mapping[str, str], found: Finding, devices: Iterable[Device]) -> str:
    """Return the devices of a finding: by all their names if they are few, counted if they are many."""
    if found.peers > 2 and len(seen) == found.peers and all(each.startswith("GPU") for each in seen):
        return f"all {len(seen)} GPUs"
    from nodetune.audit.devices import ADDRESS, Names  # most hosts have no finding about a device

    names, shown = Names(devices), text.names(seen)
    if len(seen) <= 2 and (len(shown) <= MAX_NAMES or len(seen) == 1):
        of_file = LINE_OF_FILE.fullmatch(shown)
        return of_file[1] if of_file else ", ".join(map(names.shown, seen))
    if len(shown) <= MAX_NAMES:
        return shown
    first = next(iter(seen))
    known = names.device(first) or ADDRESS.fullmatch(first)
    return f"{len(seen)} devices" if known else f"{text.plain(first)} +{len(seen) - 1}"


def _seen(left: Mapping[str, str], found: Finding, devices: Iterable[Device]) -> str:
    values = set(left.values())
    if not values:
        return found.observed
    from nodetune.audit.devices import folded

    return values.pop() if len(values) == 1 else folded(left, devices, found.repair)


def _change(found: Finding, seen: str) -> tuple[str, str]:
    """Return what it is → what it will be, and that in fewer words."""
    others = found.peers - len(found.odd)
    seen = seen or found.title
    if found.fix:
        told = f"{seen} → {_target(found, found.fix)}{_disruption(found.fix)}"
        return told, told
    if found.odd and found.usual and others and set(found.odd) <= set(found.subjects):
        return f"{seen}; {others} like it: {found.usual}", seen
    longest = MAX_WANTED // 2 if found.repair else MAX_WANTED
    if found.wanted and max(len(seen), len(found.wanted)) <= longest:
        told = f"{seen} → {found.wanted}"
        return told, told if len(seen) <= SHORT else seen
    return seen, seen


def _target(found: Finding, fix: Fix) -> str:
    """Return what a fix sets. A value that is right and only lost at the next boot stays."""
    if isinstance(fix.value, Mapping):
        return found.wanted
    value = text.setting(fix.value, fix.unit)
    if fix.kind == "kernel_arg" and fix.target != found.name:
        value = f"{fix.target}={value}"
    return f"{value} at every boot" if found.observed == f"{value} now" else value


def _disruption(fix: Fix) -> str:
    return "" if fix.disruption in FREE else f" ({disruption_name(fix.disruption)})"

"""Conclusions, examinations and actions: the values that every source makes and every consumer takes.

A source is what judges hosts: an audit, a verify, a search for slow parts, a watch … Standard library only, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.device import Device
from nodetune.api.model import SEVERITIES

SOURCES = (
    "reach",
    "audit",
    "verify",
    "find-slow",
    "late-ranks",
    "ras",
    "watch",
    "trend",
    "episodes",
    "guard",
    "readmit",
)
"""Sources of conclusions. reach: whether a host could be reached at all, which every command on hosts says."""

OPEN, UNKNOWN, WAIVED, ACCEPTED = STATES = ("open", "unknown", "waived", "accepted")
"""unknown: it could not be judged. waived: a person accepted it until a date. accepted: the site file takes it as wanted."""

CERTAIN, MEASURED, SUSPECTED = SURE = ("certain", "measured", "suspected")
"""certain: read on the host. measured: by statistics. suspected: one of several explanations."""

REPAIR, APPLY, HAND, USER = WHO = ("repair", "apply", "hand", "user")
"""The one who acts: an admin before jobs run, nodetune apply, an admin when convenient, or the owner of the job."""


@dataclass(frozen=True)
class Next:
    """The next step: a command of nodetune with its selectors, or `text` for people. The writer adds -i, -p and --site."""

    verb: str = ""
    words: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Group:
    """The hosts that a comparison is about: how many were compared, and how many of these agree."""

    name: str
    compared: int
    agree: int


@dataclass(frozen=True)
class Conclusion:
    """One fault of one host or device (or of a path, which has two hosts), as one source sees it.

    `fault` is an id of the table of faults. `about` is the figure or the collective, where a device may have several faults
    of one kind. `chance`: that a measured conclusion is wrong; `alternatives`: what else may explain a suspected one.
    `explained_by`: the fault that also reports this one. `at`: Unix time of what was judged. `reason`: why it is unknown or waived.
    """

    fault: str
    source: str
    hosts: tuple[str, ...]
    severity: str
    statement: str
    at: int = 0
    device: Device | None = None
    about: str = ""
    state: str = OPEN
    sure: str = CERTAIN
    chance: float | None = None
    alternatives: tuple[str, ...] = ()
    observed: Any = None
    wanted: Any = None
    evidence: tuple[str, ...] = ()
    who: str = HAND
    next: Next = field(default_factory=Next)
    explained_by: str = ""
    gates: bool = False
    group: Group | None = None
    job: str = ""
    reason: str = ""

    def is_same(self, other: Conclusion) -> bool:
        """Return whether it is the same fault at another time: of the same part, or at its place if one has no serial number."""
        mine, theirs = self.device, other.device
        if self.kind != other.kind or (mine is None) != (theirs is None):
            return False
        if mine is None or theirs is None:
            return True
        if mine.part and theirs.part:
            return mine.part == theirs.part
        return mine.place == theirs.place or (mine.name == theirs.name and not (mine.address and theirs.address))

    def replaces(self, other: Conclusion) -> bool:
        """Return whether it is the same fault of another part at the same place."""
        mine, theirs = self.device, other.device
        same_place = mine is not None and theirs is not None and mine.place == theirs.place
        return self.kind == other.kind and same_place and not self.is_same(other)

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...], str]:
        """Return what it is about but for the device."""
        return self.source, self.fault, self.hosts, self.about

    @property
    def counts(self) -> bool:
        """Return whether it is a fault to act on: open, and not reported by another."""
        return self.state == OPEN and not self.explained_by

    @property
    def rank(self) -> tuple[int, int, str]:
        """The place in a report: the most severe first, of these what a repair needs."""
        return -SEVERITIES.index(self.severity), WHO.index(self.who), self.fault


@dataclass(frozen=True)
class Judged:
    """A fault that was judged: on the host and all its devices, or on `only` these, but not on the `unread` ones.

    Devices are named by their place or name. `about`: one figure alone (None: all).
    """

    fault: str
    about: str | None = None
    only: frozenset[str] | None = None
    unread: frozenset[str] = frozenset()

    def covers(self, names: frozenset[str]) -> bool:
        """Return whether the device with one of these names was judged; no name is the host."""
        return not names & self.unread and (self.only is None or bool(names & self.only))


@dataclass(frozen=True)
class Examination:
    """One look of a source at a host, at `at` (Unix time), by an edition of nodetune. Without `host`: at the fleet.

    `unjudged`: fault → why it could not be judged. `devices`: devices that were there, by which an exchanged part is seen.
    """

    source: str
    host: str
    at: int
    edition: str
    judged: tuple[Judged, ...] = ()
    unjudged: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()

    def proves(self, conclusion: Conclusion) -> bool:
        """Return whether this fault was judged on this device, wherever it is now: then it is proven good if no conclusion says otherwise."""
        device = conclusion.device
        now = next((each for each in self.devices if device and each.part and each.part == device.part), device)
        names = frozenset({now.place, now.name, now.netdev, conclusion.about} if now else {conclusion.about}) - {""}
        return any(
            each.fault == conclusion.fault and each.about in (None, conclusion.about) and each.covers(names)
            for each in self.judged
        )

    def replaced(self, device: Device | None) -> bool:
        """Return whether another part is at the place of this one, which is nowhere else on the host."""
        if device is None or not device.part:
            return False
        here = {each.part for each in self.devices if each.place == device.place and each.part}
        return bool(here) and all(each.part != device.part for each in self.devices)


@dataclass(frozen=True)
class Action:
    """Something that was done to a host or a device.

    `kind`: drained, resumed, applied, rolled back, repaired, rebooted or readmitted. `by` names the user or the program, `run` the run, `reason` why.
    """

    kind: str
    host: str
    at: int
    by: str = ""
    reason: str = ""
    run: str = ""
    device: str = ""


@dataclass(frozen=True)
class Examined:
    """The conclusions and examinations of one source: the part of each document that others take."""

    conclusions: tuple[Conclusion, ...] = ()
    examinations: tuple[Examination, ...] = ()

    def __add__(self, other: Examined) -> Examined:
        return Examined(self.conclusions + other.conclusions, self.examinations + other.examinations)

    def of_host(self, host: str) -> Examined:
        """Return what is about one host."""
        return Examined(
            tuple(each for each in self.conclusions if host in each.hosts),
            tuple(each for each in self.examinations if each.host == host),
        )


def joined(every: Iterable[Examined]) -> Examined:
    """Return the conclusions and examinations of several sets, such as one a host, as one set."""
    sets = list(every)
    return Examined(
        tuple([one for each in sets for one in each.conclusions]),
        tuple([one for each in sets for one in each.examinations]),
    )


def is_older(edition: str, than: str) -> bool:
    """Return whether an edition is an earlier one: what it does not judge may be judged since, or otherwise."""
    return _numbers(edition) < _numbers(than)


def _numbers(edition: str) -> tuple[tuple[int, int], ...]:
    """Return the numbers of a version in an order in which development releases come before the release."""
    release, _, pre = re.sub("[^0-9.]+", "-", edition).partition("-")
    numbers = [(1, int(each[:18])) for each in release.split(".") if each]
    return (*numbers, *((0, int(each[:18])) for each in re.findall("[0-9]+", pre))) if pre else (*numbers, (0, 1 << 62))


REACHED = ("ok", "busy")
"""States of hosts that answered; a busy one was not measured."""


def unreached(states: Iterable[tuple[str, str, str, int]], edition: str) -> Examined:
    """Return the conclusions about hosts by (name, state, message, time): one that is not ok was not reached."""
    concluded, looked = [], []
    for host, state, message, at in states:
        if state in REACHED:
            looked.append(Examination("reach", host, at, edition, (Judged("host-not-reached"),)))
        elif state != "interrupted":
            concluded.append(
                Conclusion(
                    "host-not-reached",
                    "reach",
                    (host,),
                    "medium",
                    f"{state}: {message}" if message else state,
                    at,
                    next=Next("audit", hosts=(host,)),
                )
            )
    return Examined(tuple(concluded), tuple(looked))

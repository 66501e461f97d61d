"""One comparison over the hosts of one group. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodetune.fleet import agreement, apart, verdicts
from nodetune.fleet.agreement import FEWEST
from nodetune.fleet.comparisons import Comparison
from nodetune.fleet.found import FleetFinding
from nodetune.fleet.seen import Seen
from nodetune.model import Absent, Unread

Entry = Seen | Unread | Absent
Numbers = list[tuple[int, str, float]]
"""The number of a host in the census, a device of it, and what was measured there."""


@dataclass(frozen=True)
class Reference:
    """The host to compare with instead of the majority: its group (empty: it was not reached) and what it has."""

    host: str
    group: str
    rows: Mapping[str, Entry]


class Judge:
    """Works out once what the hosts of a group have in common, then gives the verdict on each.

    Entries that are equal are expected to be one object: the verdict on it is made once.
    """

    def __init__(
        self, comparison: Comparison, group: str, entries: Sequence[Entry], reference: Reference | None
    ) -> None:
        self._comparison, self._group, self._reference = comparison, group, reference
        objects = {id(entry): entry for entry in entries}
        counts = {objects[each]: count for each, count in Counter(map(id, entries)).items()}
        answers = {entry: count for entry, count in counts.items() if isinstance(entry, tuple)}
        self._compared = sum(answers.values())
        self._why_not = self._none_can_be_judged()
        self._pools = {} if self._why_not else self._common(answers)
        self._verdicts: dict[int, FleetFinding] = {}

    def verdict(self, entry: Entry) -> FleetFinding:
        """The finding about a host that has this."""
        key = id(entry)
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(entry)
        return self._verdicts[key]

    def _none_can_be_judged(self) -> FleetFinding | None:
        given = self._reference
        if given is None:
            few = self._compared < FEWEST
            return verdicts.too_few(self._comparison, self._group, self._compared) if few else None
        if given.group != self._group:
            kind = f"is of another kind: {given.group}" if given.group else "was not reached"
            return verdicts.skipped(self._comparison, self._group, f"the reference {given.host} {kind}")
        row = given.rows[self._comparison.id]
        if isinstance(row, tuple):
            return None
        return verdicts.skipped(self._comparison, self._group, f"on the reference {given.host}: {row.reason}")

    def _common(self, answers: Mapping[Seen, int]) -> Mapping[agreement.Pool, agreement.Common]:
        row = self._reference.rows[self._comparison.id] if self._reference else None
        if isinstance(row, tuple):
            return agreement.of_reference(self._comparison, row, answers)
        return agreement.common(self._comparison, answers)

    def _judge(self, entry: Entry) -> FleetFinding:
        comparison, group = self._comparison, self._group
        if not isinstance(entry, tuple):
            return verdicts.skipped(comparison, group, entry.reason)
        if self._why_not:
            return self._why_not
        odd, unclear = agreement.odd(comparison, entry, self._pools)
        if odd.has:
            given = self._reference.host if self._reference else ""
            return verdicts.odd(comparison, group, odd, self._pools, self._compared, given)
        if unclear.has:
            return verdicts.undecided(comparison, group, unclear, self._pools, self._compared)
        return verdicts.finding(comparison, "pass", group, compared=self._compared)


def apart_from_others(comparison: Comparison, group: str, numbers: Numbers) -> dict[int, FleetFinding]:
    """Host → the finding about its numbers, for each host that has some."""
    hosts = {host for host, _, _ in numbers}
    if len(hosts) < FEWEST:
        return dict.fromkeys(hosts, verdicts.too_few(comparison, group, len(hosts)))
    kinds: dict[str, Numbers] = {}
    for each in numbers:
        kinds.setdefault(each[1] if comparison.alike == "name" else "", []).append(each)
    outside: dict[int, dict[str, tuple[float, apart.Bounds]]] = {}
    for kind in kinds.values():
        bounds = apart.bounds([value for _, _, value in kind], comparison.least, comparison.times, comparison.below)
        for host, device, value in kind:
            if not bounds.low <= value <= bounds.high:
                outside.setdefault(host, {})[device] = value, bounds
    found = dict.fromkeys(hosts, verdicts.finding(comparison, "pass", group, compared=len(hosts)))
    for host, values in outside.items():
        found[host] = verdicts.stands_apart(comparison, group, values, len(hosts), len(outside))
    return found

"""Find the differences between the collected hosts. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodetune.api.model import FleetFinding, HostFacts
from nodetune.audit.fleet import consensus, messages
from nodetune.audit.fleet.collector import NO_GPU, CohortError, Column, FleetComparison, Key, ReferenceHostError
from nodetune.audit.fleet.observations import Entry, Seen, entry_of
from nodetune.checks.fleet_comparisons import Comparison
from nodetune.foundation import by_key, text
from nodetune.statistics import outliers
from nodetune.statistics.thresholds import MIN_FOR_MAJORITY

Numbers = list[tuple[int, str, float]]
"""The number of a host, one of its devices, and the measured value."""


@dataclass(frozen=True)
class Reference:
    """The host to compare with instead of the majority: its group (empty: unreachable) and its entries."""

    host: str
    group: str
    rows: Mapping[str, Entry]


@dataclass
class Cohort:
    """The hosts that are compared with each other, by number. `read`: the driver reports GPUs on one at least."""

    name: str
    members: list[int]
    read: bool = False


def findings(collected: FleetComparison) -> dict[str, list[tuple[FleetFinding, ...]]]:
    """Return host → its findings, once for each time that the host was added. Raise ReferenceHostError."""
    if len(collected.hosts) < 2 and not collected.reference:
        return {}
    results: list[list[FleetFinding]] = [[] for _ in collected.hosts]
    compared, reference = _groups(collected), _reference_row(collected)
    for comparison in collected.same:
        rows = collected.rows[comparison.id]
        for group in compared:
            entries = [rows[number] for number in group.members]
            judge = Evaluator(comparison, group.name, entries, reference, group.read)
            for number in group.members:
                results[number].append(judge.verdict(rows[number]))
    for comparison in collected.outlier:
        _find_outliers(comparison, collected.columns[comparison.id], compared, results)
    return by_key((host, tuple(each)) for host, each in zip(collected.hosts, results, strict=True))


def _cohort_names(keys: Iterable[Key]) -> dict[Key, str]:
    """Name the groups. GPUs that do not answer get the name of GPUs with the same IDs on another host."""
    given = list(keys)
    models = {key.ids: key.name for key in given if key.ids and key.name}
    plain = {key: key.name or models.get(key.ids, f"GPU {key.ids}") for key in given}
    return {key: f"{name} ({key.more})" if key.more else name for key, name in plain.items()}


def _groups(collected: FleetComparison) -> list[Cohort]:
    names, by_name = _cohort_names(collected.keys), dict[str, Cohort]()
    for number, key in enumerate(collected.keys):
        group = by_name.setdefault(names[key], Cohort(names[key], []))
        group.members.append(number)
        group.read |= key.name not in ("", NO_GPU)
    if collected.keys and all(key.unread for key in collected.keys):
        raise CohortError(
            f"--cohort {collected.grouping.by}: not read on any of {text.count(len(collected.keys), 'host')}"
        )
    return list(by_name.values())


def _reference_row(collected: FleetComparison) -> Reference | None:
    """Return the host to compare with, or None. Raise ReferenceHostError for a host that is not in the run."""
    if isinstance(collected.reference, HostFacts):
        rows = {each.id: entry_of(each, collected.reference) for each in collected.same}
        key = collected.grouping.key(collected.reference, ())
        return Reference(collected.reference.host, _cohort_names([*collected.keys, key])[key], rows)
    if collected.reference is None:
        return None
    if collected.reference in collected.hosts:
        number = collected.hosts.index(collected.reference)
        name = _cohort_names(collected.keys)[collected.keys[number]]
        return Reference(
            collected.reference, name, {each.id: collected.rows[each.id][number] for each in collected.same}
        )
    if collected.reference in collected.inventory:
        return Reference(collected.reference, "", {})
    raise ReferenceHostError(
        f"--reference {collected.reference!r}: no such file, and not one of the {text.count(len(collected.hosts), 'host')} of this run"
    )


def _find_outliers(
    comparison: Comparison, column: Column, compared: list[Cohort], results: list[list[FleetFinding]]
) -> None:
    of_host = {each: group.name for group in compared for each in group.members}
    numbers: dict[str, Numbers] = {group.name: [] for group in compared}
    for number, device, value in zip(column.hosts, column.devices, column.values, strict=True):
        numbers[of_host[number]].append((number, device, value))
    for group in compared:
        found = find_outliers(comparison, group.name, numbers[group.name])
        unknown = messages.skipped(comparison, group.name, "not available on this host or not comparable now")
        for number in group.members:
            results[number].append(found.get(number, unknown))


class Evaluator:
    """Finds what the hosts of a group have in common, then judges each.

    Equal entries must be one object because each object is judged once.
    """

    def __init__(
        self,
        comparison: Comparison,
        group: str,
        entries: Sequence[Entry],
        reference: Reference | None,
        read: bool = True,
    ) -> None:
        self._comparison, self._group, self._reference, self._read = comparison, group, reference, read
        objects = {id(entry): entry for entry in entries}
        counts = {objects[each]: count for each, count in Counter(map(id, entries)).items()}
        answers = {entry: count for entry, count in counts.items() if isinstance(entry, tuple)}
        self._compared = sum(answers.values())
        self._why_not = self._none_can_be_judged()
        self._pools = {} if self._why_not else self._common(answers)
        self._verdicts: dict[int, FleetFinding] = {}

    def verdict(self, entry: Entry) -> FleetFinding:
        """Return the finding about a host with this entry."""
        key = id(entry)
        if key not in self._verdicts:
            self._verdicts[key] = self._judge(entry)
        return self._verdicts[key]

    def _none_can_be_judged(self) -> FleetFinding | None:
        given = self._reference
        if given is None:
            few = self._compared < MIN_FOR_MAJORITY
            return messages.too_few(self._comparison, self._group, self._compared) if few else None
        if given.group != self._group:
            kind = f"is in another group: {given.group}" if given.group else "was not reached"
            return messages.skipped(self._comparison, self._group, f"the reference {given.host} {kind}")
        row = given.rows[self._comparison.id]
        if isinstance(row, tuple):
            return None
        return messages.skipped(self._comparison, self._group, f"on the reference {given.host}: {row.reason}")

    def _common(self, answers: Mapping[Seen, int]) -> Mapping[consensus.Pool, consensus.Consensus]:
        row = self._reference.rows[self._comparison.id] if self._reference else None
        if isinstance(row, tuple):
            return consensus.of_reference(self._comparison, row, answers)
        return consensus.common(self._comparison, answers)

    def _judge(self, entry: Entry) -> FleetFinding:
        comparison, group = self._comparison, self._group
        if not isinstance(entry, tuple):
            return messages.skipped(comparison, group, entry.reason)
        if self._why_not:
            return self._why_not
        odd, unclear = consensus.odd(comparison, entry, self._pools)
        if odd.has:
            given = self._reference.host if self._reference else ""
            found = messages.odd(comparison, group, odd, self._pools, self._compared, given)
            return found if self._read else self._unsure(found)
        if unclear.has:
            return self._unsure(messages.undecided(comparison, group, unclear, self._pools, self._compared))
        return replace(messages.finding(comparison, "pass", group), compared=self._compared)

    def _unsure(self, found: FleetFinding) -> FleetFinding:
        severity = self._comparison.unsure
        return replace(found, severity=severity, repair=False) if severity else found


def find_outliers(comparison: Comparison, group: str, numbers: Numbers) -> dict[int, FleetFinding]:
    """Return host → the finding about its numbers, for each host with numbers."""
    hosts = {host for host, _, _ in numbers}
    if len(hosts) < MIN_FOR_MAJORITY:
        return dict.fromkeys(hosts, messages.too_few(comparison, group, len(hosts)))
    kinds = by_key((each[1] if comparison.alike == "name" else "", each) for each in numbers)
    outside: dict[int, dict[str, tuple[float, outliers.Bounds]]] = {}
    for kind in kinds.values():
        bounds = outliers.bounds([value for _, _, value in kind], comparison.least, comparison.times, comparison.below)
        for host, device, value in kind:
            if not bounds.low <= value <= bounds.high:
                outside.setdefault(host, {})[device] = value, bounds
    found = dict.fromkeys(hosts, replace(messages.finding(comparison, "pass", group), compared=len(hosts)))
    for host, values in outside.items():
        found[host] = messages.outlier(comparison, group, values, len(hosts), len(outside))
    return found

"""Which parts of a host were exchanged, by their serial numbers: against earlier facts, or by what a history saw. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from nodetune.api.model import Each, HostFacts, Unread, Value
from nodetune.foundation import text
from nodetune.history.points import LeafChange

SERIALS = {"gpu.serial": "GPU", "block.serial": "NVMe drive", "rdma.guid": "NIC", "memory.serial": "memory module"}
"""Facts with a serial number for each part, and the kind of the parts."""

MAX_LENGTH = 80


@dataclass(frozen=True)
class ReplacedPart:
    """A part in its place. Empty: there was none, or there is none now."""

    kind: str
    place: str
    before: str
    after: str

    @property
    def change(self) -> str:
        return f"{self.before or 'none'} → {self.after or 'none'}"

    def __str__(self) -> str:
        return f"{self.kind} {self.place}: {self.change}"


@dataclass(frozen=True)
class Inventory:
    """The parts that were exchanged. `parts`: those that were compared (None: a history knows only changes).

    `unread`: kinds that were there and cannot be read now, with the reason.
    """

    exchanges: tuple[ReplacedPart, ...] = ()
    parts: int | None = None
    unread: Mapping[str, str] | None = None

    @property
    def gone(self) -> list[ReplacedPart]:
        """Parts without a successor."""
        return [each for each in self.exchanges if not each.after]


def against(before: HostFacts, after: HostFacts) -> Inventory:
    """Compare the serial numbers of the parts of a host before and after."""
    exchanges: list[ReplacedPart] = []
    unread, parts = {}, 0
    for fact, kind in SERIALS.items():
        old, new = _serials(before, fact), _serials(after, fact)
        problem = _unread(after, fact) if old else ""
        if problem:
            unread[kind] = problem
        if problem or (not old and _unread(before, fact)):  # that they can be read now does not make them new
            continue
        parts += len({*old.values(), *new.values()})
        exchanges += _between(kind, old, new)
    return Inventory(tuple(exchanges), parts, unread)


def by_history(changes: Iterable[LeafChange], since: float = 0) -> Inventory:
    """Return what a history saw changing: the first number of each place against its last.

    `changes`: also those before `since`: a part that was lost before that time is gone, or is the one that came back.
    """
    every = list(changes)
    found: list[ReplacedPart] = []
    for fact, kind in SERIALS.items():
        before, now = _first_and_last(each for each in every if each.leaf.startswith(f"{fact}/"))
        old, new = _first_and_last(each for each in every if each.leaf.startswith(f"{fact}/") and each.at >= since)
        came = [each for each in _between(kind, old, new) if each.before or each.after not in before.values()]
        named = {each.before for each in came}
        found += came
        found += [each for each in _between(kind, before, now) if not each.after and each.before not in named]
    return Inventory(tuple(found))


def _first_and_last(changes: Iterable[LeafChange]) -> tuple[dict[str, str], dict[str, str]]:
    """Return place → the number before its first change, and after its last."""
    old: dict[str, str] = {}
    new: dict[str, str] = {}
    for each in changes:
        place = text.plain(each.leaf.partition("/")[2], MAX_LENGTH)
        old.setdefault(place, _named(each.before))
        new[place] = _named(each.after)
    return old, new


def _between(kind: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[ReplacedPart]:
    """Compare by serial numbers: a part that is only in another place, as GPUs are when one is lost, is not exchanged."""
    lost = {place: old[place] for place in sorted(old, key=_in_order) if old[place] not in new.values()}
    came = {place: new[place] for place in sorted(new, key=_in_order) if new[place] not in old.values()}
    left, right = ([place for place in each if not (place in lost and place in came)] for each in (lost, came))
    pairs = [*((place, place) for place in lost if place in came), *zip_longest(left, right, fillvalue="")]
    return [
        ReplacedPart(kind, there or here, lost.get(here, ""), came.get(there, ""))
        for here, there in pairs
        if lost.get(here) or came.get(there)  # a place that was empty, in a history
    ]


def _serials(facts: HostFacts, fact: str) -> dict[str, str]:
    found = facts.facts.get(fact)
    of = found.of if isinstance(found, Each) else {}
    named = {text.plain(place, MAX_LENGTH): _named(one.value) for place, one in of.items() if isinstance(one, Value)}
    return {place: serial for place, serial in named.items() if serial}


def serials(facts: HostFacts) -> set[str]:
    """Return the serial numbers of all parts that are there."""
    return {serial for fact in SERIALS for serial in _serials(facts, fact).values()}


def _named(value: object) -> str:
    return text.plain(value, MAX_LENGTH) if value not in (None, "") else ""


def _unread(facts: HostFacts, fact: str) -> str:
    """Return why serial numbers cannot be read now; empty if they can, or if there are none."""
    found = facts.facts.get(fact, Unread("not collected"))
    every = [found, *found.of.values()] if isinstance(found, Each) else [found]
    return next((text.plain(each.reason, 120) for each in every if isinstance(each, Unread)), "")


def _in_order(place: str) -> tuple[str, int]:
    stem = place.rstrip("0123456789")
    number = place[len(stem) :]
    return stem, int(number) if number else -1

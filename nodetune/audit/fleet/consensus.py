"""Find what most hosts of a group have in common and which hosts differ. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodetune.audit.fleet.observations import Item, Seen
from nodetune.checks.fleet_comparisons import Comparison
from nodetune.foundation import text as plain_text
from nodetune.foundation.stats import agreed
from nodetune.statistics.thresholds import MIN_FOR_MAJORITY

Pool = tuple[str, str, str, str]


@dataclass
class Consensus:
    """The values in one pool: `devices` and `hosts` count how many have each, `wanted` is the expected one, if any."""

    devices: Counter[str] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    having: int = 0
    wanted: str | None = None
    judged: bool = False


def common(comparison: Comparison, groups: Mapping[Seen, int]) -> dict[Pool, Consensus]:
    """Count the values of a group in each pool; `groups` maps the items of a host to the number of equal hosts."""
    pools: dict[Pool, Consensus] = {}
    total = sum(groups.values())
    for items, hosts in groups.items():
        for pool in dict.fromkeys(item.pool for item in items):
            pools.setdefault(pool, Consensus()).having += hosts
        for item in items:
            pools[item.pool].devices[item.text] += hosts
        for pool, text in dict.fromkeys((item.pool, item.text) for item in items):
            pools[pool].hosts[text] += hosts
    for each in pools.values():
        if comparison.missing and total > each.having:
            each.devices[comparison.missing] += total - each.having
            each.hosts[comparison.missing] += total - each.having
            each.having = total
        each.judged = each.having >= MIN_FOR_MAJORITY
        each.wanted = agreed(each.devices.elements()) if each.judged and len(each.devices) > 1 else _only(each)
    return pools


def _only(pool: Consensus) -> str | None:
    return next(iter(pool.devices)) if pool.judged and len(pool.devices) == 1 else None


def of_reference(comparison: Comparison, reference: Seen, groups: Iterable[Seen]) -> dict[Pool, Consensus]:
    """Take the expected values from a reference instead of a majority; if it has several values, expect none."""
    pools: dict[Pool, Consensus] = {}
    for item in reference:
        each = pools.setdefault(item.pool, Consensus(judged=True, having=1))
        each.devices[item.text] += 1
        each.wanted = item.text if len(each.devices) == 1 else None
    if comparison.missing:
        for items in groups:
            for item in items:
                pools.setdefault(item.pool, Consensus(judged=True, having=1, wanted=comparison.missing))
    return {pool: each for pool, each in pools.items() if each.wanted is not None}


@dataclass(frozen=True)
class Odd:
    """Differences on one host or values without majority: device → its value, and device → the expected value."""

    has: Mapping[str, str]
    wanted: Mapping[str, str]
    pools: tuple[Pool, ...]

    def observed(self) -> str:
        return _text(self.has)

    def expected(self) -> str:
        return next(iter(self.wanted.values())) if len(set(self.wanted.values())) == 1 else _text(self.wanted)


def _text(values: Mapping[str, str]) -> str:
    return values[""] if set(values) == {""} else plain_text.folded(values)


def odd(comparison: Comparison, items: Seen, pools: Mapping[Pool, Consensus]) -> tuple[Odd, Odd]:
    """Return what differs on a host and what has no majority."""
    judged = [(item, pools[item.pool]) for item in items if item.pool in pools and pools[item.pool].judged]
    differs = [(item, pool) for item, pool in judged if pool.wanted is not None and item.text != pool.wanted]
    differs += _missing(comparison, items, pools)
    unclear = [(item, pool) for item, pool in judged if pool.wanted is None]
    return _odd(differs), _odd(unclear)


def _odd(found: list[tuple[Item, Consensus]]) -> Odd:
    wanted = {item.subject: pool.wanted or "" for item, pool in found}
    return Odd({item.subject: item.text for item, _ in found}, wanted, tuple(item.pool for item, _ in found))


def _missing(comparison: Comparison, items: Seen, pools: Mapping[Pool, Consensus]) -> list[tuple[Item, Consensus]]:
    """Find the devices that others have and this host lacks. A device with several fields counts once."""
    if not comparison.missing:
        return []
    here = {item.pool for item in items}
    first = comparison.fields[0] if len(comparison.fields) > 1 else ""
    return [
        (Item(pool[2], pool, comparison.missing), each)
        for pool, each in pools.items()
        if pool not in here and each.judged and each.wanted not in (None, comparison.missing) and pool[1] == first
    ]

"""Compare the facts of hosts then and now: absent, unread and a value are three different things. Pure.

Facts that were not collected on one side are `unread`, never a change.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value
from nodetune.facts.diff import ADDED, CHANGED, GONE, UNREAD, Change, Diff
from nodetune.foundation import text

READINGS = re.compile(
    r"(gpu\.(temperature|temperature_margin|memory_temperature|power_usage|clock_info\..*|memory_used|fan_speed"
    r"|clocks_event_reasons|performance_state|ecc_.*_(aggregate|volatile)|pcie_replay_counter|nvlink_errors"
    r"|(compute|graphics|mps_compute)_running_processes|curr_pcie_link_generation)"
    r"|host\.(uptime_s|boot_id)|memory\.(available_kb|free_kb|free_blocks|extfrag_index|swap_free_kb|ksm\.pages_sharing|edac)"
    r"|net\.(statistics|counters|carrier_changes|neighbours)|rdma\.(counters|hw_counters)|tcp|block\.smart|cpu\.throttle_events"
    r"|mounts\.(usage|answers)|slurm\.registered\.(state|reason)|pci\.(aer|answers)|bmc\.event_log|xid\.log|services\.(processes|running)"
    r"|(services|limits|numa|memory|irq|bmc|nccl|kubernetes|mounts)\..*\b(pid|since|since_us|restarts|free_kb|available_kb|free_bytes|free"
    r"|promised|used_kb|reading|irqs|examples|remote|max_error_us|mtime|source))(\..*)?"
)
"""Facts, or fields of facts, that change constantly: counters, temperatures, load, process numbers."""

IDENTITY = re.compile(
    r"(.*\b(serial|uuid|asset_tag|hostname|boot_id|machine_id|gids?|guid|address|cluster_uuid|lid|sm_lid)\b.*)"
)
"""Facts that identify a machine: they always differ between two hosts."""

UNIQUE = re.compile(r".*([0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|([0-9a-f]{2}:){5}[0-9a-f]{2}).*", re.IGNORECASE)
"""A value that contains a UUID or a hardware address."""


@dataclass(frozen=True)
class Side:
    """The facts of hosts, and the hosts with unreadable facts, with the reasons."""

    hosts: Mapping[str, HostFacts]
    bad: Mapping[str, str] = field(default_factory=dict)

    def state(self, host: str) -> str:
        return "bad facts" if host in self.bad else "ok" if host in self.hosts else "missing"


def compare(before: Side, after: Side, every: bool = False) -> Diff:
    """Compare the facts of hosts before and after. A single host on each side is compared whatever its name.

    Readings (and between two hosts, identities) are only counted, unless `every` is set.
    """
    sides = before, after
    bad = sorted(before.bad.keys() | after.bad.keys())
    alone = not bad and len(before.hosts) == len(after.hosts) == 1
    old_names, new_names = (side.hosts.keys() - set(bad) for side in sides)
    pairs = (
        _alone(before, after)
        if alone
        else [(before.hosts[each], after.hosts[each]) for each in sorted(old_names & new_names)]
    )
    found = [(change, old, new) for old, new in pairs for change in _of_host(old, new)]
    kept = [change for change, old, new in found if every or not _moves(change, old.host != new.host)]
    return Diff(
        "facts",
        () if alone else tuple(sorted(old_names - new_names)),
        () if alone else tuple(sorted(new_names - old_names)),
        {host: (before.state(host), after.state(host)) for host in bad},
        changes=tuple(kept),
        compared=len(pairs),
        readings=len(found) - len(kept),
        rebooted=tuple(new.host for old, new in pairs if old.host == new.host and _booted(old) != _booted(new)),
        bad={host: tuple(side.bad[host] for side in sides if host in side.bad) for host in bad},
    )


def _booted(host: HostFacts) -> Any:
    fact = host.facts.get("host.boot_id")
    return fact.value if isinstance(fact, Value) else None


def _alone(before: Side, after: Side) -> list[tuple[HostFacts, HostFacts]]:
    return [(next(iter(before.hosts.values())), next(iter(after.hosts.values())))]


def _moves(change: Change, two_hosts: bool) -> bool:
    unique = IDENTITY.fullmatch(change.what) or (UNIQUE.fullmatch(change.before) and UNIQUE.fullmatch(change.after))
    return bool(READINGS.fullmatch(change.what) or (two_hosts and unique))


def _of_host(old: HostFacts, new: HostFacts) -> Iterator[Change]:
    for name in sorted(old.facts.keys() | new.facts.keys()):
        before, after = (each.facts.get(name, Unread("not collected")) for each in (old, new))
        if before != after:
            for subject, then, now in _subjects(before, after):
                for what, kind, was, becomes in _single(name, then, now):
                    yield Change(new.host, kind, what, subject, was, becomes)


def _subjects(before: Fact, after: Fact) -> Iterator[tuple[str, Fact, Fact]]:
    """Yield a fact over several devices, device by device; a device missing on a side is absent there."""
    if not (isinstance(before, Each) and isinstance(after, Each)):
        yield "", _whole(before), _whole(after)
        return
    for device in {**after.of, **before.of}:
        then, now = (each.of.get(device, Absent("no such device")) for each in (before, after))
        yield device, then, now


def _whole(fact: Fact) -> Fact:
    """Turn a fact over several devices into one value, for a side without any of them."""
    if not isinstance(fact, Each):
        return fact
    return Value(text.folded({device: _told(one) for device, one in fact.of.items()}) or "no device")


def _single(name: str, before: Fact, after: Fact) -> Iterator[tuple[str, str, str, str]]:
    """Yield (fact and field, kind, before, after) of every difference between two facts."""
    match before, after:
        case Value(then), Value(now):
            for field_, was, becomes in _values(then, now):
                kind = ADDED if was is None else GONE if becomes is None else CHANGED
                yield f"{name}{field_}", kind, _text(was), _text(becomes)
        case (Unread(), Unread()) | (Absent(), Absent()):
            return
        case (Unread(), _) | (_, Unread()):
            yield name, UNREAD, _told(before), _told(after)
        case Absent(), Value():
            yield name, ADDED, "absent", _told(after)
        case _:
            yield name, GONE, _told(before), "absent"


def _told(fact: Fact) -> str:
    match fact:
        case Value(value):
            return _text(value)
        case Unread(reason):
            return f"unread ({reason})"
        case _:
            return "absent"


_MISSING = object()
DEEPEST = 4
NAMES = ("name", "path", "bdf", "index")
"""Keys that identify the records of a list: the first that all records have with different values."""


def _keyed(value: Any) -> Any:
    """Turn a list of records into a mapping, so that a new first record does not shift all others."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for name in NAMES:
            keys = [text.plain(each.get(name), 80) for each in value]
            if all(name in each for each in value) and len(set(keys)) == len(keys):
                return dict(zip(keys, value, strict=True))
    return value


def _alike(before: Any, after: Any) -> tuple[Any, Any]:
    old, new = _keyed(before), _keyed(after)
    return ({} if old == [] and isinstance(new, dict) else old), ({} if new == [] and isinstance(old, dict) else new)


def _values(before: Any, after: Any, depth: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path of the field, before, after) of every difference; None on a side without a value."""
    before, after = _alike(before, after)
    if isinstance(before, dict) and isinstance(after, dict) and depth < DEEPEST:
        for key in [*before, *(each for each in after if each not in before)]:
            old, new = before.get(key, _MISSING), after.get(key, _MISSING)
            path = f".{text.plain(key, 80)}"
            if old is _MISSING or new is _MISSING:
                yield path, None if old is _MISSING else _named(old), None if new is _MISSING else _named(new)
            else:
                for rest, was, becomes in _values(old, new, depth + 1):
                    yield f"{path}{rest}", was, becomes
    elif isinstance(before, list) and isinstance(after, list) and _plain(before) and _plain(after):
        gone, came = ([one for one in here if one not in there] for here, there in ((before, after), (after, before)))
        if gone or came:
            yield "", gone or None, came or None
        elif before != after:
            yield "", before, after
    elif before != after:
        yield "", _named(before), _named(after)


def _named(value: Any) -> Any:
    """Return "none" for null, which is a value here and not missing."""
    return "none" if value is None else value


def _plain(items: list[Any]) -> bool:
    return all(isinstance(one, str | int | float) for one in items)


def _text(value: Any) -> str:
    return "" if value is None else text.plain(text.value(value), 400) or '""'

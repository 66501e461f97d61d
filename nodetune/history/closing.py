"""Which known conclusions stay open, and which are over. Pure.

A conclusion closes only when an examination proves that very fault good on that very device, or when its part was
exchanged. What was not selected, not read, not reached, older, or judged by an older edition proves nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodetune.api.conclusion import UNKNOWN, Conclusion, Examination, Examined, is_older
from nodetune.foundation import by_key

PROVEN, EXCHANGED = "proven", "exchanged"


@dataclass(frozen=True)
class Open:
    """A conclusion that is known: `since` it was first seen, by `edition`; `unproven` since when examinations say nothing of it (0: not)."""

    conclusion: Conclusion
    since: int
    edition: str = ""
    unproven: int = 0
    id: int = 0


@dataclass(frozen=True)
class Closed:
    """A conclusion that is over, since when, and why: PROVEN or EXCHANGED."""

    known: Open
    at: int
    why: str


@dataclass
class Settled:
    """The changes by a set of examinations: new conclusions, those with another text, and those that are over."""

    new: list[Open] = field(default_factory=list)
    changed: list[Open] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
    kept: list[Open] = field(default_factory=list)

    @property
    def open(self) -> list[Open]:
        """Return all that is open now."""
        return [*self.kept, *self.changed, *self.new]


Last = Mapping[tuple[str, str], int]
"""(source, host) → the time of its last examination."""


Looked = Mapping[tuple[str, str], Sequence[Examination]]
"""(source, host) → its examinations: a host may be measured by itself and as the other end of a path."""


def settle(
    known: Iterable[Open],
    found: Examined,
    last: Last,
    exchanged: Iterable[tuple[str, str]] = (),
    missing: Iterable[tuple[str, str]] = (),
) -> Settled:
    """Return what these conclusions and examinations change. `last`: the examinations before; older ones say nothing.

    `exchanged`: (host, part) of the parts that are known to have left their host; `missing`: of those that are not there now.
    """
    looked = by_key(((each.source, each.host), each) for each in found.examinations if _is_news(each, last))
    there = by_key(
        (each.kind, each) for each in found.conclusions if each.state != UNKNOWN and _counts(each, looked, last)
    )
    known = list(known)
    of_hosts = (
        by_key((new.kind[:3], new) for alike in there.values() for new in alike) if any(map(_is_name, known)) else {}
    )
    gone, absent = frozenset(exchanged), frozenset(missing)
    done = Settled()
    for each in known:
        alike = there.get(each.conclusion.kind, [])
        same = next((new for new in alike if new.is_same(each.conclusion)), None)
        if same is None and _is_name(each):
            same = next((new for new in of_hosts.get(each.conclusion.kind[:3], ()) if _has_name(new, each)), None)
        if same is not None:
            there[same.kind] = [new for new in there[same.kind] if not new.is_same(same)]
            _keep(done, each, same, _edition(same, looked, each.edition))
        elif successor := next((new for new in alike if new.replaces(each.conclusion)), None):
            done.closed.append(Closed(each, successor.at, EXCHANGED))
        else:
            _close(done, each, looked, last, gone, absent)
    done.new += [Open(new, new.at, _edition(new, looked, "")) for of_kind in there.values() for new in _once(of_kind)]
    return done


def _is_name(known: Open) -> bool:
    """Return whether it is of an earlier edition, which kept the name of a device alone, or what a finding said of it."""
    return known.conclusion.device is not None and not known.conclusion.statement


def _has_name(new: Conclusion, known: Open) -> bool:
    name = known.conclusion.device.name if known.conclusion.device else ""
    return name in (new.about, new.device.netdev if new.device else "")


def _once(alike: Sequence[Conclusion]) -> Sequence[Conclusion]:
    """Return each fault of a part once: a device may have been named by two of its names."""
    if len(alike) < 2:
        return alike
    found: list[Conclusion] = []
    for each in alike:
        if not any(each.is_same(other) for other in found):
            found.append(each)
    return found


def _is_news(each: Examination, last: Last) -> bool:
    return each.at >= max(1, last.get((each.source, each.host), 0))  # one without a time says nothing


def _counts(each: Conclusion, looked: Looked, last: Last) -> bool:
    """Return whether a conclusion is not older than what is known of its hosts."""
    return each.at > 0 and all(
        (each.source, host) in looked or each.at >= last.get((each.source, host), 0) for host in each.hosts
    )


def _edition(each: Conclusion, looked: Looked, known: str) -> str:
    """Return the edition that saw a conclusion last."""
    seen = [looked[each.source, host][0].edition for host in each.hosts or ("",) if (each.source, host) in looked]
    return seen[0] if seen else known


def _keep(done: Settled, known: Open, now: Conclusion, edition: str) -> None:
    """Keep a conclusion that was seen again: with its text of now, and the serial number that was known."""
    if now.device and not now.device.part:
        now = _with_part(now, known.conclusion)
    later = Open(now, known.since, edition, 0, known.id)
    told = (known.conclusion, known.edition, known.unproven)
    same_text = (_timeless(now), edition, 0) == (_timeless(told[0]), *told[1:])
    (done.kept if same_text else done.changed).append(known if same_text else later)


def _timeless(each: Conclusion) -> Conclusion:
    return replace(each, at=0)


def _with_part(now: Conclusion, known: Conclusion) -> Conclusion:
    if not (now.device and known.device):
        return now
    return replace(now, device=replace(now.device, uuid=known.device.uuid, serial=known.device.serial))


def _close(
    done: Settled,
    known: Open,
    looked: Looked,
    last: Last,
    gone: frozenset[tuple[str, str]],
    absent: frozenset[tuple[str, str]],
) -> None:
    each = known.conclusion
    seen = [one for host in each.hosts or ("",) for one in looked.get((each.source, host), ())]
    later = [one for one in seen if one.at >= known.since]
    part = each.device.part if each.device else ""
    if (part and any((host, part) in gone for host in each.hosts)) or any(one.replaced(each.device) for one in later):
        done.closed.append(Closed(known, max((one.at for one in later), default=known.since), EXCHANGED))
        return
    proofs = {one.host: one.at for one in later if _proves(one, known)}
    if len(proofs) == len(set(each.hosts or ("",))) and not any((host, part) in absent for host in each.hosts):
        done.closed.append(Closed(known, max(proofs.values()), PROVEN))
    elif seen and not known.unproven:
        before = max(last.get((each.source, host), 0) for host in each.hosts or ("",))
        done.changed.append(Open(each, known.since, known.edition, max(before, known.since), known.id))
    else:
        done.kept.append(known)


def _proves(looked: Examination, known: Open) -> bool:
    return looked.proves(known.conclusion) and not is_older(looked.edition, known.edition)


def folded(every: Sequence[Examined], known: Iterable[Open] = (), before: Last | None = None) -> Settled:
    """Return what several sets leave open, the oldest first: without a history, or after what one knows (`known`, `before`)."""
    last = dict(before or {})
    done = Settled(kept=[*known])
    for found in every:
        now = settle(done.open, found, last)
        done = Settled(new=now.open, closed=[*done.closed, *now.closed])
        for each in found.examinations:
            last[each.source, each.host] = max(each.at, last.get((each.source, each.host), 0))
    return done

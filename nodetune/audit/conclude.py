"""From the results of an audit to what it concludes: a conclusion for each fault and device, and what was judged. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from nodetune import __version__
from nodetune.api.conclusion import (
    APPLY,
    CERTAIN,
    HAND,
    MEASURED,
    OPEN,
    REPAIR,
    UNKNOWN,
    WAIVED,
    Conclusion,
    Examination,
    Examined,
    Group,
    Judged,
    Next,
    joined,
    unreached,
)
from nodetune.api.device import Device
from nodetune.api.model import Finding, FleetFinding, HostResult
from nodetune.audit.devices import Names

SOURCE = "audit"
WHO = {"repair": REPAIR, "apply": APPLY, "hand": HAND}
STATES = {"fail": OPEN, "waived": WAIVED, "unknown": UNKNOWN}


def concluded(results: Iterable[HostResult], now: int = 0) -> Examined:
    """Return what an audit concludes. `now`: Unix time for hosts without facts, or whose facts have none."""
    return joined(by_host(results, now))


def by_host(results: Iterable[HostResult], now: int = 0) -> Iterator[Examined]:
    """Yield what an audit concludes about each host. Most hosts share their findings, and then what was judged."""
    known: dict[tuple[int, ...], tuple[Any, tuple[Judged, ...], dict[str, str]]] = {}
    for result in results:
        key = tuple(map(id, result.findings))
        if key not in known:
            known[key] = (
                result.findings,
                *_judgement(result.findings),
            )  # kept, so that no other object gets an id of theirs
        yield _of_host(result, now, *known[key][1:])


def of_host(result: HostResult, now: int = 0) -> Examined:
    """Return what an audit concludes about one host."""
    return _of_host(result, now, *_judgement(result.findings))


def _judgement(findings: Iterable[Finding]) -> tuple[tuple[Judged, ...], dict[str, str]]:
    """Return what was judged, and fault → why it was not."""
    every = list(findings)
    judged = tuple([_judged(each.check, each.unread) for each in every if each.status in ("pass", "fail")])
    return judged, {each.check: each.reason for each in every if each.status == "unknown"}


def _of_host(result: HostResult, now: int, judged: tuple[Judged, ...], unjudged: dict[str, str]) -> Examined:
    at = result.at or now
    reached = unreached([(result.host, result.state, result.message, at)], __version__)
    if result.state != "ok":
        return reached
    names = Names(result.devices)
    looked = Examination(SOURCE, result.host, at, __version__, judged, unjudged, result.devices)
    found = tuple(
        [one for each in result.findings if each.status in STATES for one in _of(result.host, at, each, names)]
    )
    return reached + Examined(found, (looked,))


@lru_cache(4096)
def _judged(check: str, unread: tuple[str, ...]) -> Judged:
    return Judged(check, unread=frozenset(unread))


def _of(host: str, at: int, found: Finding, names: Names) -> Iterator[Conclusion]:
    """Yield a conclusion for each device of a finding, or one for the host."""
    whole = Conclusion(
        found.check,
        SOURCE,
        (host,),
        found.severity,
        statement(found.title, found.observed),
        at,
        state=STATES[found.status],
        sure=MEASURED if isinstance(found, FleetFinding) else CERTAIN,
        observed=found.observed or None,
        wanted=found.wanted or None,
        who=WHO[found.who],
        next=_next(host, found),
        explained_by=found.part_of,
        gates=found.gates,
        group=Group(found.group, found.compared, found.agree) if isinstance(found, FleetFinding) else None,
        reason=found.reason,
    )
    if found.status == "unknown" or not found.subjects:
        yield whole
        return
    for subject, observed in found.subjects.items():
        device, about = _device(subject, names)
        by = found.reported_by.get(subject) or found.part_of
        said = statement(found.title, observed)
        yield replace(whole, device=device, about=about, observed=observed, statement=said, explained_by=by)


def _device(subject: str, names: Names) -> tuple[Device, str]:
    """Return the device that a subject names, and the subject if it says more than that."""
    device = names.device(subject) or names.device(subject.partition(" ")[0])
    if device is None:
        return Device(subject), ""
    return device, "" if subject in (device.name, device.address, device.netdev) else subject


def statement(title: str, observed: str) -> str:
    """Return the fault in one sentence, with what was observed."""
    return f"{title}: {observed}" if observed else title


def _next(host: str, found: Finding) -> Next:
    if found.who == "apply":
        return Next("plan", ("-s", found.check), (host,))
    return Next("explain", (found.check,), text=" ".join(found.manual.split()))

"""Conclusions and examinations as JSON data: the members `conclusions` and `examined` of each document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from nodetune.api.conclusion import (
    STATES,
    SURE,
    WHO,
    Conclusion,
    Examination,
    Examined,
    Group,
    Judged,
    Next,
)
from nodetune.api.device import Device
from nodetune.api.model import SEVERITIES

NESTED = {"device": Device, "next": Next, "group": Group}
MEMBERS = {kind: frozenset(each.name for each in fields(kind)) for kind in (Conclusion, *NESTED.values())}
REQUIRED = {(name, each.name) for name, kind in NESTED.items() for each in fields(kind) if each.default is MISSING}
"""Members without a default, which are written also where they are zero or empty."""

MAX_TIME = 1 << 37
"""Seconds until about the year 6300."""

NAMES = tuple(each.name for each in fields(Conclusion))
DEFAULTS = {each.name: each.default for each in fields(Conclusion) if each.default is not MISSING}


def members(found: Examined) -> dict[str, Any]:
    """Return the members that every document of a source has."""
    return {
        "conclusions": [data(each) for each in found.conclusions],
        "examined": examinations_data(found.examinations),
    }


def read(document: Mapping[str, Any]) -> Examined:
    """Return what a document concludes; nothing for one of an earlier edition. Raise ValueError for members of another form."""
    try:
        return Examined(
            tuple(from_data(each) for each in document.get("conclusions", ())),
            tuple(examinations_from_data(document.get("examined", ()))),
        )
    except (AttributeError, KeyError, TypeError) as problem:
        raise ValueError(f"conclusions of another form: {problem}") from None


def data(conclusion: Conclusion) -> dict[str, Any]:
    """Return a conclusion as JSON data, without members that have their default."""
    told: dict[str, Any] = {}
    for name in NAMES:
        value = getattr(conclusion, name)
        if name in NESTED:
            told |= (
                {name: {of: _plain(one) for of, one in vars(value).items() if one or (name, of) in REQUIRED}}
                if value not in (None, Next())
                else {}
            )
        elif value != DEFAULTS.get(name, MISSING):
            told[name] = _plain(value)
    return told


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, frozenset)) else value


def from_data(told: Mapping[str, Any]) -> Conclusion:
    """Return the conclusion that `data` made. Raise TypeError or ValueError for anything else."""
    nested = {name: _made(kind, told[name]) for name, kind in NESTED.items() if name in told}
    made: Conclusion = _made(Conclusion, {**told, **nested})
    then, device = made.next, made.device
    lists = (made.hosts, made.alternatives, made.evidence, then.words, then.hosts)
    one = (
        made.fault,
        made.source,
        made.statement,
        made.about,
        made.reason,
        made.job,
        made.explained_by,
        then.verb,
        then.text,
    )
    if not all(isinstance(each, tuple) for each in lists):
        raise TypeError("not a conclusion")
    texts = (*one, *(text for each in lists for text in each), *(vars(device).values() if device else ()))
    if not all(isinstance(each, str) for each in texts) or not is_time(made.at):
        raise TypeError("not a conclusion")
    for value, words in ((made.severity, SEVERITIES), (made.state, STATES), (made.sure, SURE), (made.who, WHO)):
        if value not in words:
            raise ValueError(f"{value} is not one of {', '.join(words)}")
    return made


def _made(kind: Any, told: Any) -> Any:
    """Return a value of this class from its members; those of a later edition are left out."""
    if not isinstance(told, Mapping):
        raise TypeError("no object")
    known = MEMBERS[kind]
    return kind(**{name: tuple(one) if isinstance(one, list) else one for name, one in told.items() if name in known})


def is_time(at: Any) -> bool:
    """Return whether a value is a Unix time that a calendar has."""
    return isinstance(at, int) and not isinstance(at, bool) and 0 <= at < MAX_TIME


def examinations_data(looked: Iterable[Examination]) -> list[dict[str, Any]]:
    """Return examinations as JSON data: those that judged the same, of one source, as one with all their hosts and times."""
    alike: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in looked:
        judged = tuple(map(id, each.judged))  # hosts that were judged alike have the same objects
        key = (each.source, each.edition, judged, each.devices, tuple(sorted(each.unjudged.items())))
        known = alike.get(key)
        if known is None:
            known = alike[key] = {
                "source": each.source,
                "edition": each.edition,
                "hosts": {},
                "judged": [_judged_data(one) for one in each.judged],
                "unjudged": dict(sorted(each.unjudged.items())),
                "devices": [{k: v for k, v in vars(one).items() if v} for one in each.devices],
            }
        known["hosts"][each.host] = each.at
    return list(alike.values())


def _judged_data(each: Judged) -> Any:
    """Return the fault alone, where it was judged on all devices: nearly all are."""
    if each.about is None and each.only is None and not each.unread:
        return each.fault
    told: dict[str, Any] = {"fault": each.fault}
    if each.about is not None:
        told["about"] = each.about
    if each.only is not None:
        told["only"] = sorted(each.only)
    if each.unread:
        told["unread"] = sorted(each.unread)
    return told


def examinations_from_data(told: Any) -> list[Examination]:
    """Return the examinations that `examinations_data` made. Raise TypeError, KeyError, AttributeError or ValueError."""
    found = []
    for each in told:
        judged = tuple(_judged(one) for one in each["judged"])
        devices = tuple(_made(Device, one) for one in each.get("devices", ()))
        if not all(isinstance(name, str) for one in devices for name in vars(one).values()):
            raise TypeError("not a device")
        for host, at in each["hosts"].items():
            if not is_time(at):
                raise TypeError("not a time")
            found.append(
                Examination(
                    str(each["source"]), str(host), int(at), str(each["edition"]), judged,
                    {str(fault): str(why) for fault, why in each.get("unjudged", {}).items()}, devices,
                )
            )  # fmt: skip
    return found


def _judged(told: Any) -> Judged:
    if isinstance(told, str):
        return Judged(told)
    only = told.get("only")
    return Judged(
        str(told["fault"]),
        None if told.get("about") is None else str(told["about"]),
        None if only is None else frozenset(map(str, only)),
        frozenset(map(str, told.get("unread", ()))),
    )

"""Profiles: which checks count on a host, what they want there, and who may live with what.

A profile is a stack of small files, each over the one before: base, an intent (training, inference), what the facts
say about the host (vm, grace, a GPU), and the site's own file. Errors name file and line.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from nodetune import checks, derived, expect, fleet, located, paths, sitechecks, siteprovision, waive
from nodetune.located import BadFile, Located
from nodetune.model import Check, HostFacts, Waiver, When
from nodetune.view import Missing, Unreadable, View

FOLDER = paths.bundled("profiles")
PROBE = Path(__file__).parent / "probe"
INTENT = "training"
KEYS = {"about", "when", "checks", "add", "waivers", "profile", "provision"}


@dataclass(frozen=True)
class Overlay:
    """One file of the stack, checked: `checks` maps id → override (None: leave untouched, False: off)."""

    name: str
    file: str
    about: str = ""
    when: tuple[When, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    add: tuple[Check, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    profile: tuple[str, ...] = ()
    provision: siteprovision.Provision | None = None


@dataclass(frozen=True)
class Profile:
    """A resolved stack: the selected checks as they are to be judged, the gating ones, the waivers."""

    names: tuple[str, ...]
    checks: tuple[Check, ...]
    gates: frozenset[str]
    waivers: tuple[Waiver, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(name for name in self.names if name != "base")


@cache
def shipped() -> dict[str, Overlay]:
    """The overlays that come with nodetune, by name."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.yml"))}


def read(path: Path, name: str = "") -> Overlay:
    """Read and check one profile or site file. Raises BadFile."""
    return _overlay(located.load(path), name or path.stem)


def _overlay(file: Located, name: str) -> Overlay:
    data = {} if file.data is None else file.data
    if not isinstance(data, dict):
        file.fail("a profile is a mapping with: " + ", ".join(sorted(KEYS)))
    for key in data:
        if key not in KEYS:
            file.fail(_unknown(key, KEYS, "key"), key)
    added = sitechecks.read(file)
    known = {*checks.catalogue(), *(check.id for check in added)}
    return Overlay(
        name,
        file.file,
        str(data.get("about", "")),
        _conditions(file),
        _overrides(file, known),
        added,
        _waivers(file, known | set(fleet.every())),
        _names(file),
        siteprovision.read(file),
    )


def _unknown(word: Any, words: Iterable[str], kind: str) -> str:
    close = get_close_matches(str(word), list(words), 1)
    return f"no {kind} is called {word!r}" + (f": did you mean {close[0]!r}?" if close else "")


def _names(file: Located) -> tuple[str, ...]:
    given = file.data.get("profile", []) if file.data else []
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        file.fail("profile wants a name or a list of names", "profile")
    for number, name in enumerate(names):
        if name not in shipped():
            file.fail(_no_profile(name), "profile", number)
    return tuple(names)


def _no_profile(name: str) -> str:
    return _unknown(name, shipped(), "profile") + f"; there are: {', '.join(shipped())}"


def _conditions(file: Located) -> tuple[When, ...]:
    given = (file.data or {}).get("when", [])
    if not isinstance(given, list):
        file.fail("when wants a list of {fact, accept, because}", "when")
    found = []
    for number, each in enumerate(given):
        if not isinstance(each, dict) or not {"fact", "accept"} <= set(each) <= {"fact", "accept", "because"}:
            file.fail("a condition is {fact: name, accept: predicate, because: text}", "when", number)
        _known_fact(file, str(each["fact"]), "when", number)
        found.append(
            When(str(each["fact"]), _predicate(file, each["accept"], "when", number), str(each.get("because", "")))
        )
    return tuple(found)


def _predicate(file: Located, data: Any, *path: Any) -> expect.Predicate:
    try:
        found = expect.from_data(data)
    except ValueError as problem:
        file.fail(str(problem), *path)
    for name in expect.refs(found):
        _known_fact(file, name, *path)
    return found


def _known_fact(file: Located, name: str, *path: Any) -> None:
    collector = PROBE / f"{name.partition('.')[0]}.py"
    if not (derived.exists(name) if derived.is_derived(name) else collector.is_file()):
        file.fail(f"no fact is called {name!r}", *path)


def _overrides(file: Located, known: Iterable[str]) -> dict[str, Any]:
    given = (file.data or {}).get("checks") or {}
    if not isinstance(given, dict):
        file.fail("checks wants a mapping of check id to override", "checks")
    return {check_id: _override(file, check_id, each, known) for check_id, each in given.items()}


def _override(file: Located, check_id: Any, given: Any, known: Iterable[str]) -> Any:
    at = ("checks", check_id)
    if check_id not in known:
        file.fail(_unknown(check_id, known, "check") + " (list them: nodetune checks)", *at)
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, dict):
        file.fail(f"{check_id} wants a mapping, on, off, or nothing (leave untouched)", *at)
    for key in given:
        if key not in OVERRIDES:
            file.fail(_unknown(key, OVERRIDES, "setting"), *at, key)
    return {key: _SETTINGS[key](file, each, *at, key) for key, each in given.items()}


def _accept(file: Located, given: Any, *path: Any) -> expect.Predicate | None:
    return None if given is None else _predicate(file, given, *path)


def _value(file: Located, given: Any, *path: Any) -> Any:
    found = expect.operand_from_data(given)
    for name in expect.refs(found):
        _known_fact(file, name, *path)
    return found


def _gate(file: Located, given: Any, *path: Any) -> bool:
    if not isinstance(given, bool):
        file.fail("gate wants true or false", *path)
    return given


_SETTINGS: dict[str, Callable[..., Any]] = {
    "accept": _accept,
    "set": _value,
    "severity": sitechecks.severity,
    "gate": _gate,
}
OVERRIDES = frozenset(_SETTINGS)


def _waivers(file: Located, known: Iterable[str]) -> tuple[Waiver, ...]:
    given = (file.data or {}).get("waivers") or []
    if not isinstance(given, list):
        file.fail("waivers wants a list", "waivers")
    return tuple(_waiver(file, number, each, known) for number, each in enumerate(given))


def _waiver(file: Located, number: int, given: Any, known: Iterable[str]) -> Waiver:
    wanted = ("id", "hosts", "reason", "owner", "until")
    if not isinstance(given, dict) or set(given) != set(wanted):
        missing = [key for key in wanted if not isinstance(given, dict) or key not in given]
        file.fail(
            f"a waiver has exactly {', '.join(wanted)}" + (f": {', '.join(missing)} is missing" if missing else ""),
            "waivers",
            number,
        )
    if not isinstance(given["id"], str) or given["id"] not in known:
        file.fail(_unknown(given["id"], known, "check"), "waivers", number, "id")
    hosts, until = given["hosts"], given["until"]
    if not isinstance(hosts, str):
        file.fail("hosts wants a text such as gpu[001-004],login*", "waivers", number, "hosts")
    try:
        waive.read(hosts)
    except ValueError as problem:
        file.fail(f"hosts: {problem}", "waivers", number, "hosts")
    if not isinstance(until, datetime.date):
        file.fail("until wants a date such as 2027-01-31", "waivers", number, "until")
    return Waiver(given["id"], hosts, str(given["reason"]), str(given["owner"]), until.isoformat())


def matching(facts: HostFacts, given: Iterable[str] = ()) -> tuple[tuple[str, ...], str]:
    """The stack for a host, and why, in words: base, the profiles that were asked for (without any: the default
    intent), and those whose conditions the facts meet. Raises BadFile for a name that does not exist.
    """
    asked = tuple(given) or (INTENT,)
    chosen, reasons = list(named(asked)), ["as told"] if given else []
    for name, overlay in shipped().items():
        reason = name not in chosen and overlay.when and _met(overlay.when, facts)
        if reason:
            chosen.append(name)
            reasons.append(f"{name}: {reason}")
    return tuple(chosen), "; ".join(reasons)


def _met(conditions: tuple[When, ...], facts: HostFacts) -> str:
    """Why all conditions hold; empty when one does not (or cannot be told)."""
    view = View(facts, [when.fact for when in conditions])
    for when in conditions:
        try:
            seen = view[when.fact]
        except (Missing, Unreadable):
            return ""
        values = list(seen.values()) if isinstance(seen, dict) else [seen]
        if not values or not all(expect.as_predicate(when.accept).test(each) for each in values):
            return ""
    return ", ".join(when.otherwise or when.fact for when in conditions)


def named(names: Iterable[str]) -> tuple[str, ...]:
    """A stack from names that a person gave. Raises BadFile for one that does not exist."""
    stack = ["base", *names]
    for name in stack:
        if name not in shipped():
            raise BadFile(_no_profile(name))
    return tuple(stack)


def resolve(names: tuple[str, ...], site: Overlay | None = None) -> Profile:
    """The checks of a stack of overlays as they are to be judged. Raises BadFile."""
    if site and site.when:
        raise BadFile(f"{site.file}: when has no effect in a site file, which applies to every host: take it out")
    overlays = [shipped()[name] for name in names] + ([site] if site else [])
    selected = {check.id: check for check in (*checks.load_all(), *(site.add if site else ()))}
    gate: dict[str, bool] = {}
    for overlay in overlays:
        for check_id, change in overlay.checks.items():
            _change(selected, gate, check_id, change)
    gates = {
        check.id
        for check in selected.values()
        if gate.get(check.id, check.severity == "critical" and check.stability == "stable")
    }
    shown = (*names, *([site.name] if site else []))
    return Profile(shown, tuple(selected.values()), frozenset(gates), site.waivers if site else ())


def _change(selected: dict[str, Check], gate: dict[str, bool], check_id: str, change: Any) -> None:
    if change is False:
        selected.pop(check_id, None)
        return
    if change is True:
        selected[check_id] = checks.load(check_id) if check_id in checks.catalogue() else selected[check_id]
        return
    check = selected.get(check_id)
    if check is None:  # off stays off until a later overlay says on
        return
    if change is None:
        selected[check_id] = replace(check, accept=None)
        return
    if "gate" in change:
        gate[check_id] = change["gate"]
    selected[check_id] = replace(check, **{key: each for key, each in change.items() if key != "gate"})

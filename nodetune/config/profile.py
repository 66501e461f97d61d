"""Profiles: which checks count on a host, what they want there, and who may live with what.

A profile is a stack of small files, each over the one before: base, an intent (training, inference), what the facts
say about the host (vm, grace, a GPU), and the site's own file. Errors name file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune import checks
from nodetune.api import derived, predicates
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Check, HostFacts, Waiver, When
from nodetune.checks import fleet_comparisons
from nodetune.foundation import paths, yaml_lines
from nodetune.foundation.yaml_lines import FileError, LocatedYaml

if TYPE_CHECKING:
    from nodetune.config.site_provision import Provision

FOLDER = paths.bundled("config/profiles")
PROBE = Path(__file__).parents[1] / "probe"

TRAINING, INFERENCE = "training", "inference"
PURPOSE_FACTS = ("slurm.present", "services.running")
SERVES = re.compile(
    r"(vllm|triton(server)?|sglang|ollama|tgi|text-generation|lmdeploy|llama-server)[-@.]", re.IGNORECASE
)
"""How the unit of a serving stack begins. Processes are no evidence: they come and go, and the verdicts would with them."""

GUESS = f"judged as {TRAINING}: -p {INFERENCE} for serving"


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
    provision: Provision | None = None


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
    """Return the overlays that come with nodetune, by name."""
    return {
        path.stem: _overlay(yaml_lines.load(path, yaml_lines.OWN), path.stem) for path in sorted(FOLDER.glob("*.yml"))
    }


def read(path: Path, name: str = "") -> Overlay:
    """Read and check one profile or site file. Raises FileError."""
    from nodetune.config import site_schema

    file = yaml_lines.load(path)
    site_schema.check(file)
    return _overlay(file, name or path.stem)


def _overlay(file: LocatedYaml, name: str) -> Overlay:
    added, provision = _of_sites(file)
    known = {*checks.catalogue(), *(check.id for check in added)}
    return Overlay(
        name,
        file.file,
        str((file.data or {}).get("about", "")),
        _conditions(file),
        _with_gates(file, _overrides(file, known)),
        added,
        _waivers(file, known),
        _names(file),
        provision,
    )


def _of_sites(file: LocatedYaml) -> tuple[tuple[Check, ...], Provision | None]:
    """Read what only site files have: checks of their own, and what a node is provisioned with."""
    if not {"add", "provision"} & set(file.data or ()):
        return (), None
    from nodetune.config import site_checks, site_provision

    return site_checks.read(file), site_provision.read(file)


def _with_gates(file: LocatedYaml, overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the overrides with the `gate` of checks that the file adds. An override of the same check has the last word."""
    merged = dict(overrides)
    for each in (file.data or {}).get("add") or ():
        change = overrides.get(each["id"], {})
        if "gate" in each and isinstance(change, dict):
            merged[each["id"]] = {"gate": each["gate"], **change}
    return merged


def _waivers(file: LocatedYaml, known: set[str]) -> tuple[Waiver, ...]:
    """Read the waivers, which only site files have."""
    if not (file.data or {}).get("waivers"):
        return ()
    from nodetune.config import waivers

    return waivers.parse(file, known | set(fleet_comparisons.every()))


def _names(file: LocatedYaml) -> tuple[str, ...]:
    given = file.data.get("profile", []) if file.data else []
    names = [given] if isinstance(given, str) else given
    for number, name in enumerate(names):
        if name not in shipped():
            file.fail(_no_profile(name), "profile", number)
    return tuple(names)


def _no_profile(name: str) -> str:
    return yaml_lines.unknown(name, shipped(), "profile") + f"; there are: {', '.join(shipped())}"


def _conditions(file: LocatedYaml) -> tuple[When, ...]:
    given = (file.data or {}).get("when", [])
    found = []
    for number, each in enumerate(given):
        _known_fact(file, each["fact"], "when", number)
        found.append(When(each["fact"], _predicate(file, each["accept"], "when", number), str(each.get("because", ""))))
    return tuple(found)


def _predicate(file: LocatedYaml, data: Any, *path: Any) -> predicates.Predicate:
    try:
        found = predicates.from_data(data)
    except ValueError as problem:
        file.fail(f"{problem}{_counts_in(*path)}", *path)
    for name in predicates.refs(found):
        _known_fact(file, name, *path)
    return found


def _counts_in(key: str, check_id: Any, *_: Any) -> str:
    unit = checks.load(check_id).unit if key == "checks" and check_id in checks.catalogue() else ""
    return f"; this check counts in {unit}" if unit else ""


def _known_fact(file: LocatedYaml, name: str, *path: Any) -> None:
    collector = PROBE / f"{name.partition('.')[0]}.py"
    if not (derived.exists(name) if derived.is_derived(name) else collector.is_file()):
        file.fail(f"no fact is called {name!r}", *path)


def _overrides(file: LocatedYaml, known: Iterable[str]) -> dict[str, Any]:
    given = (file.data or {}).get("checks") or {}
    return {check_id: _override(file, check_id, each, known) for check_id, each in given.items()}


def _override(file: LocatedYaml, check_id: Any, given: Any, known: Iterable[str]) -> Any:
    at = ("checks", check_id)
    if check_id not in known:
        file.fail(yaml_lines.unknown(check_id, known, "check") + " (list them: nodetune checks)", *at)
    if given is None or isinstance(given, bool):
        return given
    changed = dict(given)
    if Path(file.file).parent != FOLDER:  # our own profiles count in the units of the checks
        from nodetune.config import quantities

        changed = quantities.in_units_of(check_id, given, file, at)
    if given.get("accept") is not None:
        changed["accept"] = _predicate(file, changed["accept"], *at, "accept")
    if "set" in given:
        changed["set"] = _value(file, changed["set"], *at, "set")
    return changed


def _value(file: LocatedYaml, given: Any, *path: Any) -> Any:
    found = predicates.operand_from_data(given)
    for name in predicates.refs(found):
        _known_fact(file, name, *path)
    return found


def matching(facts: HostFacts, given: Iterable[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return the stack for a host, and the reason in words.

    The stack is base, the given profiles (by default what the host is for), and the profiles whose conditions the facts
    meet. Raise FileError for a name that does not exist.
    """
    asked, why = tuple(given), "as told"
    if not asked:
        purpose, why = _purpose(facts)
        asked = (purpose,)
    chosen, reasons = list(named(asked)), [why]
    for name, overlay in shipped().items():
        reason = name not in chosen and overlay.when and _met(overlay.when, facts)
        if reason:
            chosen.append(name)
            reasons.append(f"{name}: {reason}")
    return tuple(chosen), "; ".join(reasons)


def _purpose(facts: HostFacts) -> tuple[str, str]:
    """Return the profile for what a host is for, where nobody said so, and the reason in words.

    Kubernetes says nothing: it runs both.
    """
    view = FactsView(facts, PURPOSE_FACTS)
    if view.readable("slurm.present"):
        return TRAINING, f"{TRAINING}: Slurm runs jobs here"
    serving = [unit for unit in view.readable("services.running", ()) if SERVES.match(unit)]
    return (INFERENCE, f"{INFERENCE}: {serving[0]} runs here") if serving else (TRAINING, GUESS)


def _met(conditions: tuple[When, ...], facts: HostFacts) -> str:
    """Return why all conditions are met; empty if one is not met or is unknown."""
    view = FactsView(facts, [when.fact for when in conditions])
    for when in conditions:
        try:
            seen = view[when.fact]
        except (FactAbsentError, FactUnreadError):
            return ""
        values = list(seen.values()) if isinstance(seen, dict) else [seen]
        if not values or not all(predicates.as_predicate(when.accept).test(each) for each in values):
            return ""
    return ", ".join(when.otherwise or when.fact for when in conditions)


def named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the stack for the names that a user gave. Raise FileError for one that does not exist."""
    stack = ["base", *names]
    for name in stack:
        if name not in shipped():
            raise FileError(_no_profile(name))
    return tuple(stack)


def resolve(names: tuple[str, ...], site: Overlay | None = None) -> Profile:
    """Return the checks of a stack of overlays with all overrides applied. Raise FileError."""
    if site and site.when:
        raise FileError(f"{site.file}: when has no effect in a site file, which applies to every host: take it out")
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

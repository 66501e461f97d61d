"""Overlays: read and check the files from which a profile is stacked. All errors are found, with their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune import checks
from nodetune.api import derived, predicates
from nodetune.api.model import Check, Waiver, When
from nodetune.foundation import paths, yaml_lines
from nodetune.foundation.yaml_lines import LocatedYaml

if TYPE_CHECKING:
    from nodetune.config.site_provision import Provision

FOLDER = paths.bundled("config/profiles")
PROBE = Path(__file__).parents[1] / "probe"

Rank = tuple[str, int, int]
"""An inventory group of a host: its name, its depth below `all`, and its priority."""


@dataclass(frozen=True)
class Scope:
    """The hosts of a section in a site file: those of a group, or those that `hosts` names."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{'group' if self.kind == 'groups' else 'hosts'} {self.name}"


@dataclass
class Membership:
    """The inventory groups of the hosts of a run (None: no inventory), and the site file resolved for each."""

    ranks: dict[str, tuple[Rank, ...] | None] = field(default_factory=dict)
    made: dict[Any, Overlay] = field(default_factory=dict)


@dataclass(frozen=True)
class Overlay:
    """One file of the stack, checked: `checks` maps id → override (None: leave untouched, False: off).

    A site file also has `sections` with values for some hosts, each an overlay with a `scope`. If several files are
    given, `then` holds the later ones. `lines` has the lines of the overrides; `number` counts the files.
    """

    name: str
    file: str
    about: str = ""
    when: tuple[When, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    add: tuple[Check, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    profile: tuple[str, ...] = ()
    provision: Provision | None = None
    gpu_hour: float | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    scope: Scope | None = None
    sections: tuple[Overlay, ...] = ()
    then: tuple[Overlay, ...] = ()
    number: int = 0
    members: Membership = field(default_factory=Membership, compare=False, repr=False)

    def layers(self) -> tuple[Overlay, ...]:
        """Return the applicable files in order."""
        return (self, *self.then)

    def changes(self) -> Iterator[tuple[Overlay, str, Any]]:
        """Yield every override, for any hosts, with its layer and its check."""
        for each in (*self.layers(), *self.sections):
            for check_id, change in each.checks.items():
                yield each, check_id, change

    def place(self, check_id: str) -> str:
        """Return the file and line of a check's override."""
        scope = f" ({self.scope})" if self.scope else ""
        return f"{self.file} line {self.lines[check_id]}{scope}" if check_id in self.lines else f"{self.file}{scope}"


@cache
def shipped_names() -> dict[str, Path]:
    """Return the profiles that come with nodetune, and their files."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yml"))}


def parse(file: LocatedYaml, name: str) -> Overlay:
    """Parse one of nodetune's own profiles. Raise FileError."""
    found = parsed(file, name, set(checks.catalogue()))
    file.finish()
    return found


def parsed(file: LocatedYaml, name: str, known: set[str]) -> Overlay:
    """Parse what any overlay may contain about these checks. Errors are collected."""
    overrides, lines = overrides_of(file, known, "checks")
    about = str((file.data or {}).get("about", ""))
    return Overlay(name, file.file, about, _conditions(file), overrides, lines=lines)


def no_profile(name: str) -> str:
    """Return the message for an unknown profile."""
    return yaml_lines.unknown(name, shipped_names(), "profile", f"; there are: {', '.join(shipped_names())}")


def _conditions(file: LocatedYaml) -> tuple[When, ...]:
    given = (file.data or {}).get("when", [])
    found = []
    for number, each in enumerate(given):
        with file.collecting():
            known_fact(file, each["fact"], "when", number)
            accept = _predicate(file, each["accept"], "when", number)
            found.append(When(each["fact"], accept, str(each.get("because", ""))))
    return tuple(found)


def _predicate(file: LocatedYaml, data: Any, *path: Any) -> predicates.Predicate:
    try:
        found = predicates.from_data(data)
    except ValueError as problem:
        file.fail(f"{problem}{_counts_in(path, data)}", *path)
    for name in predicates.refs(found):
        known_fact(file, name, *path)
    return found


NAMES_FAULTS = "lists faults and accepts only an empty list, so it cannot accept a number; switch it off, waive it, or add a check of your own"


def _counts_in(path: tuple[Any, ...], data: Any) -> str:
    """Return a hint about the unit of the check, if the predicate belongs to one."""
    from nodetune.config import quantities

    check_id = path[path.index("checks") + 1] if "checks" in path else ""
    if check_id not in checks.catalogue():
        return ""
    check = checks.load(check_id)
    if check.unit:
        return f"; {check_id} counts in {check.unit}"
    if isinstance(check.accept, predicates.Empty):
        return f"; {check_id} {NAMES_FAULTS}"
    return f"; {check_id} takes numbers without a unit" if quantities.has_quantity(data) else ""


def _refuse_number(file: LocatedYaml, check_id: str, accept: predicates.Predicate, *at: Any) -> None:
    """Raise FileError for a number as accepted value of a check that lists faults: it would fail on every host."""
    number = predicates.wants_number(accept)
    if number and check_id in checks.catalogue() and isinstance(checks.load(check_id).accept, predicates.Empty):
        file.fail(f"{check_id} {NAMES_FAULTS}", *at)


def known_fact(file: LocatedYaml, name: str, *path: Any) -> None:
    """Raise FileError for a fact that nothing collects or derives."""
    collector = PROBE / f"{name.partition('.')[0]}.py"
    if not (derived.exists(name) if derived.is_derived(name) else collector.is_file()):
        file.fail(f"unknown fact {name!r}", *path)


def overrides_of(file: LocatedYaml, known: set[str], *at: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return id → override, and id → line. Patterns apply to checks that are not named themselves."""
    given: Any = file.data or {}
    for key in at:
        given = (given or {}).get(key) or {}
    patterns = [key for key in given if isinstance(key, str) and any(sign in key for sign in "*?[")]
    found: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for pattern in patterns:
        with file.collecting():
            for check_id in sorted(_matching(file, pattern, given[pattern], known, at) - set(given)):
                if found.setdefault(check_id, given[pattern]) != given[pattern]:
                    file.fail(
                        f"{pattern} contradicts the pattern in line {lines[check_id]} on {check_id}", *at, pattern
                    )
                lines.setdefault(check_id, file.line(*at, pattern))
    for check_id in given:
        if check_id not in patterns:
            with file.collecting():
                found[check_id] = _override(file, check_id, given[check_id], known, (*at, check_id))
                lines[check_id] = file.line(*at, check_id)
    return found, lines


def _matching(file: LocatedYaml, pattern: str, change: Any, known: set[str], at: tuple[str, ...]) -> set[str]:
    """Return the checks that a pattern matches. Raise FileError if none match or if it has keys for a single check."""
    found = {each for each in known if fnmatchcase(each, pattern)}
    if not found:
        file.fail(f"no check matches {pattern!r} (list them: nodetune checks)", *at, pattern)
    if isinstance(change, dict) and {"accept", "set"} & set(change):
        file.fail("a pattern takes on, off, nothing, severity and gate: accept and set are for one check", *at, pattern)
    return found


def _override(file: LocatedYaml, check_id: Any, given: Any, known: Iterable[str], at: tuple[Any, ...]) -> Any:
    if check_id not in known:
        file.fail(yaml_lines.unknown(check_id, known, "check") + " (list them: nodetune checks)", *at)
    if given is None or isinstance(given, bool):
        return given
    changed, before = dict(given), len(file.problems)
    with file.collecting():
        if given.get("accept") is not None:
            accept = _in_unit_of(check_id, "accept", given["accept"], file, at)
            changed["accept"] = _predicate(file, accept, *at, "accept")
            _refuse_number(file, check_id, changed["accept"], *at, "accept")
    with file.collecting():
        if "set" in given:
            changed["set"] = predicates.operand_from_data(_in_unit_of(check_id, "set", given["set"], file, at))
            for name in predicates.refs(changed["set"]):
                known_fact(file, name, *at, "set")
    whole = len(file.problems) == before
    return changed if whole else {key: each for key, each in changed.items() if key not in ("accept", "set")}


def _in_unit_of(check_id: str, key: str, given: Any, file: LocatedYaml, at: tuple[Any, ...]) -> Any:
    if Path(file.file).parent == FOLDER:  # our own profiles count in the units of the checks
        return given
    from nodetune.config import quantities

    return quantities.in_unit_of(check_id, key, given, file, at)

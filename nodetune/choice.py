"""What a run is about: which checks, and the facts that they take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from nodetune import audit, checks, derived, expect, factfile, fleet, plan, profile
from nodetune.located import BadFile
from nodetune.model import Check

ALWAYS = ("host.hostname", "host.arch", "host.kernel", "host.os", "host.virtual", "host.virtual_reason", "host.boot_id")


@dataclass(frozen=True)
class Choice:
    """Which checks a run is about: profile names (empty: by the facts), a site file, patterns of ids or areas.

    With a census (see `comparing`), its hosts are compared with each other too.
    """

    profiles: tuple[str, ...] = ()
    site: profile.Overlay | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    census: fleet.Census | None = None

    def wants(self, check: Check) -> bool:
        return self.wants_named(check.id, check.area)

    def wants_named(self, *names: str) -> bool:
        """Whether the patterns leave in what has these names (its id, its area)."""
        return (not self.select or _matches(names, self.select)) and not _matches(names, self.ignore)

    @cached_property
    def candidates(self) -> tuple[Check, ...]:
        """Every check that this run might judge on some host, whatever profile its facts lead to."""
        added = self.site.add if self.site else ()
        every = (*checks.load_all(), *added)
        compared = self.census.comparisons if self.census else ()
        known = {name for check in every for name in (check.id, check.area)}
        for pattern in self.select:
            _known(pattern, known | {name for each in compared for name in (each.id, fleet.AREA)})
        for pattern in self.ignore:  # site checks and comparisons may be left out of a run that has none
            _known(pattern, known | {"site", fleet.AREA, *fleet.every()})
        wanted = tuple(check for check in every if self.wants(check))
        if not wanted and not compared:
            raise BadFile(f"--ignore {', '.join(self.ignore)} leaves no check over")
        return wanted

    def judged(self) -> tuple[Check, ...]:
        """The candidates, and what is compared between hosts."""
        return (*self.candidates, *(each.as_check() for each in (self.census.comparisons if self.census else ())))

    def facts(self) -> set[str]:
        """The facts to collect: what the candidates need, and what chooses the profile."""
        overlays = [*profile.shipped().values(), *([self.site] if self.site else [])]
        chosen_by = {when.fact for overlay in overlays for when in overlay.when}
        changed = set().union(
            *(
                expect.refs(change.get("accept")) | expect.refs(change.get("set"))
                for overlay in overlays
                for change in overlay.checks.values()
                if isinstance(change, dict)
            ),
            set(),
        )
        compared = audit.raw(self._census().needs())
        return audit.required_facts(self.candidates) | chosen_by | audit.raw(changed) | compared | set(ALWAYS)

    def _census(self) -> fleet.Census:
        """The one of this run; else what saved facts must hold so that they can be compared later."""
        return self.census or fleet.Census(() if self.select else None)


class Planning(Choice):
    """A choice of checks that also asks for the facts that carrying out their fixes takes."""

    def facts(self) -> set[str]:
        return super().facts() | plan.facts_for(check.remedy.kind for check in self.candidates)


def comparing(choice: Choice, by: str = fleet.GPU, reference: str | None = None) -> Choice:
    """The same choice for hosts that are compared with each other too: within groups `by` (gpu, inventory, all or a
    fact), with the majority or with a reference (a fact file, or one of the hosts). Raises BadFile or factfile.BadFacts.
    """
    known = derived.exists(by) if derived.is_derived(by) else (profile.PROBE / f"{by.partition('.')[0]}.py").is_file()
    if by not in fleet.WAYS and not ("." in by and known):
        raise BadFile(f"--group-by wants {', '.join(fleet.WAYS)} or the name of a fact: no fact is called {by!r}")
    golden = factfile.load(Path(reference)) if reference and Path(reference).is_file() else reference
    wanted = (each for each in fleet.every().values() if choice.wants_named(each.id, fleet.AREA))
    return replace(choice, census=fleet.Census(wanted, by, golden))


def _known(pattern: str, names: Iterable[str]) -> None:
    """Raises BadFile for a pattern that no id or area matches."""
    if not _matches(names, [pattern]):
        near = get_close_matches(pattern, list(names), 3)
        hint = f"did you mean {' or '.join(near)}? List all with" if near else "list them with"
        raise BadFile(f"no check matches {pattern}: {hint}: nodetune checks")


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

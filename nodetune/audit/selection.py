"""The selection of a run: its checks and the facts that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune import checks
from nodetune.api import derived, predicates
from nodetune.api.model import Check, HostFacts
from nodetune.audit import evaluate
from nodetune.checks import fleet_comparisons
from nodetune.checks.fleet_comparisons import Comparison
from nodetune.config import profile
from nodetune.facts import document
from nodetune.foundation import text
from nodetune.foundation.yaml_lines import FileError

if TYPE_CHECKING:
    from nodetune.audit import fleet
    from nodetune.audit.scorecards import Scorecard

ALWAYS = ("host.hostname", "host.arch", "host.kernel", "host.os", "host.virtual", "host.virtual_reason", "host.boot_id")


@dataclass(frozen=True)
class Between:
    """The comparison between hosts: what, the cohorts (`by`: see `comparing`), and the reference, if any."""

    comparisons: tuple[Comparison, ...]
    by: str
    reference: str | HostFacts | None


@dataclass(frozen=True)
class Selection:
    """The checks of a run: profile names (empty: by the facts), a site file, patterns of ids or areas.

    With `between` (see `comparing`), the hosts are also compared with each other; with `against`, results keep the facts
    that this scorecard asks for.
    """

    profiles: tuple[str, ...] = ()
    site: profile.Overlay | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    between: Between | None = None
    files: tuple[Path, ...] = ()
    """The site files, for proposed commands."""
    against: Scorecard | None = None

    @property
    def words(self) -> list[str]:
        """The options that select profiles and site files, for proposed commands."""
        chosen = [word for name in self.profiles for word in ("-p", name)]
        return [*chosen, *(word for file in self.files for word in ("--site", str(file)))]

    @cached_property
    def collector(self) -> fleet.FleetComparison | None:
        """Takes the compared values of each host; None if nothing is compared."""
        if self.between is None:
            return None
        from nodetune.audit import fleet  # one host alone needs none

        return fleet.FleetComparison(self.between.comparisons, self.between.by, self.between.reference)

    def site_of(self, host: str) -> profile.Overlay | None:
        """Return the site file resolved for a host. Raise FileError."""
        if self.site is None:
            return None
        from nodetune.config import site  # most runs have none

        return site.of_host(self.site, host)

    def expect(self, ranks: Mapping[str, tuple[profile.Rank, ...] | None]) -> None:
        """Take the inventory groups of hosts. Raise FileError if the site file cannot be resolved for one of them."""
        if self.site:
            from nodetune.config import site

            site.expect(self.site, ranks)

    def wants(self, check: Check) -> bool:
        return self.wants_named(check.id, check.area)

    def wants_named(self, *names: str) -> bool:
        """Return whether the patterns select a check with these names (its id, its area)."""
        return (not self.select or _matches(names, self.select)) and not _matches(names, self.ignore)

    @cached_property
    def candidates(self) -> tuple[Check, ...]:
        """Return every check that this run might judge on a host, whatever profile its facts select."""
        self.validate()
        return tuple(filter(self.wants, self._every()))

    def _every(self) -> tuple[Check, ...]:
        return (*checks.load_all(), *(self.site.add if self.site else ()))

    def validate(self) -> None:
        """Raise FileError for a pattern that matches nothing, or if no checks are left."""
        compared = self._compared()
        known = {name for check in self._every() for name in (check.id, check.area)}
        for pattern in self.select:
            _known(pattern, known | {name for each in compared for name in (each.id, fleet_comparisons.AREA)})
        for pattern in self.ignore:  # site checks and comparisons may be left out of a run that has none
            _known(pattern, known | {"site", fleet_comparisons.AREA, *fleet_comparisons.every()})
        if not compared and not any(map(self.wants, self._every())):
            raise FileError(f"--ignore {', '.join(self.ignore)} leaves no checks")

    def judged(self) -> tuple[Check, ...]:
        """Return the candidates and the comparisons between hosts."""
        return (*self.candidates, *(each.as_check() for each in self._compared()))

    def _compared(self) -> tuple[Comparison, ...]:
        return self.between.comparisons if self.between else ()

    def facts(self) -> set[str]:
        """Return the facts to collect for the candidates and for the choice of the profile."""
        overlays = profile.shipped().values()
        chosen_by = evaluate.raw(when.fact for overlay in overlays for when in overlay.when)
        if not self.profiles:
            chosen_by |= set(profile.PURPOSE_FACTS)
        changed = set().union(
            *(
                predicates.refs(change.get("accept")) | predicates.refs(change.get("set"))
                for change in (
                    *(change for overlay in overlays for change in overlay.checks.values()),
                    *(change for _, _, change in (self.site.changes() if self.site else ())),
                )
                if isinstance(change, dict)
            ),
            set(),
        )
        from nodetune.audit import devices  # saved facts have what they have

        required = evaluate.required_facts(self.candidates)
        families = {name.partition(".")[0] for name in required}
        named = {name for family in families for name in devices.NEEDS.get(family, ())}
        compared = evaluate.raw(self._needed().needs())
        return required | named | chosen_by | evaluate.raw(changed) | compared | set(ALWAYS)

    def _needed(self) -> fleet.FleetComparison:
        """Return the comparison of this run, or what saved facts must contain to be compared later."""
        from nodetune.audit import fleet

        return self.collector or fleet.FleetComparison(() if self.select else None)


def comparing(selection: Selection, by: str = fleet_comparisons.GPU, reference: str | None = None) -> Selection:
    """Return the selection for hosts that are also compared with each other.

    `by` names the cohorts: gpu, inventory, all or a fact. A reference (a fact file, or one of the hosts) replaces the
    majority. Raise FileError or document.FactsError.
    """
    known = derived.exists(by) if derived.is_derived(by) else (profile.PROBE / f"{by.partition('.')[0]}.py").is_file()
    if by not in fleet_comparisons.WAYS and not ("." in by and known):
        near = text.near(by, selection.facts())
        hint = f": did you mean {' or '.join(near)}?" if near else " (nodetune facts prints them all)"
        raise FileError(
            f"--cohort takes {', '.join(fleet_comparisons.WAYS)} or the name of a fact: unknown fact {by!r}{hint}"
        )
    golden = document.load(Path(reference)) if reference and Path(reference).is_file() else reference
    area = fleet_comparisons.AREA
    wanted = tuple(each for each in fleet_comparisons.every().values() if selection.wants_named(each.id, area))
    return replace(selection, between=Between(wanted, by, golden))


def _known(pattern: str, names: Iterable[str]) -> None:
    """Raise FileError if a pattern matches no id or area."""
    if not _matches(names, [pattern]):
        near = text.near(pattern, names)
        hint = f"did you mean {' or '.join(near)}? List all with" if near else "list them with"
        raise FileError(f"no check matches {pattern if pattern.strip() else repr(pattern)}: {hint}: nodetune checks")


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

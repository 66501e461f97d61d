"""The order of the stages; the only module that knows it."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from nodetune import audit, bundle, checks, derived, expect, factfile, fleet, inventory, plan, profile, waive
from nodetune.located import BadFile
from nodetune.model import Check, HostFacts, HostResult
from nodetune.transport import Options, Target, Unreachable, fanout

ALWAYS = ("host.hostname", "host.arch", "host.kernel", "host.os", "host.virtual", "host.virtual_reason", "host.boot_id")
PROBE_SECONDS = 20.0


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
        known = [*((check.id, check.area) for check in every), *((each.id, fleet.AREA) for each in compared)]
        for pattern in self.select:
            if not any(_matches(names, [pattern]) for names in known):
                raise BadFile(f"no check matches {pattern}: list them with: nodetune checks")
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


def compared(results: Iterable[HostResult], choice: Choice, today: str = "") -> list[HostResult]:
    """The results with what the comparison of the hosts found about each. Raises fleet.BadReference."""
    known = list(results)  # before the census is asked: results may come, and fill it, only now
    found = choice.census.findings() if choice.census else {}
    if choice.census and len(known) == 1 and not found and not choice.candidates:
        raise BadFile("one host cannot be compared with itself: name several, or give --reference")
    waivers, day = choice.site.waivers if choice.site else (), today or _today()
    told = []
    for result in known:
        mine = found[result.host].pop(0) if result.state == "ok" and found.get(result.host) else ()
        waived = waive.waive(mine, waivers, result.host, day) if waivers else mine
        told.append(replace(result, findings=(*result.findings, *waived)) if waived else result)
    return told


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def _matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


class Judge:
    """Turns the facts of hosts into findings; resolves each stack of overlays once."""

    def __init__(self, choice: Choice, today: str = "") -> None:
        self._choice = choice
        self._today = today or _today()
        self._resolved: dict[tuple[str, ...], tuple[profile.Profile, list[audit.Prepared]]] = {}

    def _profile_of(self, facts: HostFacts) -> tuple[profile.Profile, list[audit.Prepared], str]:
        """The profile for a host with its checks made ready, and why it is this one."""
        given = self._choice.profiles or (self._choice.site.profile if self._choice.site else ())
        names, reason = profile.matching(facts, given)
        if names not in self._resolved:
            chosen = profile.resolve(names, self._choice.site)
            wanted = (check for check in chosen.checks if self._choice.wants(check))
            ready = [audit.Prepared(check, gates=check.id in chosen.gates) for check in wanted]
            self._resolved[names] = chosen, ready
        return *self._resolved[names], reason

    def result(self, facts: HostFacts, seconds: float = 0.0) -> HostResult:
        """The audit of one host; a census takes from its facts what it needs."""
        if self._choice.census:
            self._choice.census.add(facts)
        chosen, ready, reason = self._profile_of(facts)
        findings = audit.audit(ready, facts)
        waived = waive.waive(findings, chosen.waivers, facts.host, self._today)
        return HostResult(
            facts.host, "ok", findings=waived, profile=chosen.name, profile_reason=reason, seconds=seconds
        )


@dataclass(frozen=True)
class Reach:
    """How hosts are reached: see the options of the same names on the command line."""

    inventory: str | None = None
    limit: str | None = None
    forks: int = 64
    transport: str = "auto"
    options: Options = field(default_factory=Options)
    become: bool = False
    become_password: str | None = None
    user: str | None = None

    def targets(self) -> list[Target]:
        """The hosts of this run. Raises inventory.BadInventory."""
        found = inventory.targets(self.inventory, self.limit)
        return [self._with_options(target) for target in found]

    def _with_options(self, target: Target) -> Target:
        changes: dict[str, object] = {}
        if self.become:
            changes["become"] = True
        if self.become_password is not None:
            changes["become_password"] = self.become_password
        if self.user:
            changes["user"] = self.user
        return replace(target, **changes) if changes else target  # type: ignore[arg-type]


def collect(
    targets: list[Target], names: set[str], reach: Reach
) -> Iterator[tuple[Target, HostFacts | Unreachable, float]]:
    """Probe hosts, each yielded as it completes."""
    asked = bundle.families(names)
    given = reach.options.seconds
    seconds = min(max(PROBE_SECONDS, given / 2), given)

    return fanout.collect(
        targets, lambda _target: bundle.script(asked, seconds), reach.options, reach.forks, reach.transport, asked=asked
    )


def probe_hosts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """The facts of hosts, unjudged, each yielded as it completes."""
    for target, facts, seconds in collect(targets, choice.facts(), reach):
        if isinstance(facts, Unreachable):
            yield HostResult(target.name, facts.state, facts.message, seconds=seconds)
        else:
            yield HostResult(target.name, "ok", facts=facts, seconds=seconds)


def audit_hosts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """Probe and judge hosts, each yielded as it completes. Facts are let go once they are judged."""
    return (replace(each, facts=None) for each in audit_keeping_facts(targets, choice, reach))


def audit_keeping_facts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """The same, and each result holds the facts that it was judged by."""
    if choice.census:
        choice.census.expect({target.name: target.groups for target in targets})
    judge = Judge(choice)
    for probed in probe_hosts(targets, choice, reach):
        judged = judge.result(probed.facts, probed.seconds) if probed.facts else probed
        yield replace(judged, facts=probed.facts)


def audit_files(path: Path, choice: Choice) -> Iterator[HostResult]:
    """Judge saved facts: a file, or every *.json of a folder, where a bad one is a host that was not reached.

    Raises factfile.BadFacts (the one file, or no file at all), located.BadFile (nothing selected) or OSError.
    """
    choice.facts()  # a selection that names nothing must not read as compliant
    judge = Judge(choice)
    if not path.is_dir():
        return iter([judge.result(factfile.load(path))])
    return (_file_result(judge, each) for each in factfile.files(path))


def _file_result(judge: Judge, path: Path) -> HostResult:
    try:
        return judge.result(factfile.load(path))
    except (factfile.BadFacts, OSError) as problem:
        return HostResult(path.stem, "bad facts", str(problem))


def by_name(results: Iterable[HostResult]) -> list[HostResult]:
    """Results in the order of the hosts' names."""
    return sorted(results, key=lambda result: result.host)

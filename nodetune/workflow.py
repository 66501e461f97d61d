"""The order of the stages; the only module that knows it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from nodetune import audit, bundle, factfile, fleet, inventory, profile, pull, spread, waive
from nodetune.choice import Choice
from nodetune.kept import Kept
from nodetune.located import BadFile
from nodetune.model import HostFacts, HostResult
from nodetune.saved import Saved
from nodetune.transport import Options, Target, Unreachable, fanout, slurm

PROBE_SECONDS = 20.0

T = TypeVar("T")


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

    def judged(self, probed: HostResult) -> tuple[HostResult, fleet.Row | None]:
        """The audit of a host that was reached, without its facts; and what a census compares of it."""
        if not probed.facts:
            return probed, None
        row = self._choice.census.row(probed.facts) if self._choice.census else None
        return replace(self.result(probed.facts, probed.seconds), message=probed.message), row

    def result(self, facts: HostFacts, seconds: float = 0.0) -> HostResult:
        """The audit of one host."""
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
    via: str = "ssh"
    kept: Kept | None = None

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
    if reach.via == "slurm":
        return slurm.collect(targets, *_script(asked, reach), reach.options)
    return fanout.collect(
        targets, lambda _target: _script(asked, reach), reach.options, reach.forks, reach.transport, asked=asked
    )


def _script(asked: Mapping[str, list[str]], reach: Reach) -> tuple[bytes, str]:
    given = reach.options.seconds
    return bundle.script(asked, min(max(PROBE_SECONDS, given / 2), given))


def probe_hosts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """The facts of hosts, unjudged, each yielded as it completes; those that are kept are not asked for again."""
    names, left = choice.facts(), []
    for target in targets:
        known = reach.kept.known(target, names) if reach.kept else None
        if known:
            yield known
        else:
            left.append(target)
    for target, facts, seconds in collect(left, names, reach) if left else ():
        if isinstance(facts, Unreachable):
            yield HostResult(target.name, facts.state, facts.message, seconds=seconds)
            continue
        if reach.kept:
            reach.kept.keep(target, facts, names)
        yield HostResult(target.name, "ok", facts=facts, seconds=seconds)


def audit_hosts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """Probe and judge hosts, each yielded as it completes: many of them in several processes. No facts are kept."""
    _expect(targets, choice)
    by_name = {target.name: target for target in targets}
    count = 1 if reach.via == "slurm" else spread.processes(len(targets))  # one srun is for all hosts
    share = replace(reach, forks=max(1, reach.forks // count))
    if len(targets) > 1:
        _script(bundle.families(choice.facts()), reach)  # packed here, so that no process and no thread has to
    return _judged_by(
        by_name, choice, lambda part: ((each.host, each) for each in probe_hosts(part, choice, share)), count
    )


def audit_keeping_facts(targets: list[Target], choice: Choice, reach: Reach) -> Generator[HostResult, None, None]:
    """The same in this process, and each result holds the facts that it was judged by."""
    _expect(targets, choice)
    judge = Judge(choice)
    for probed in probe_hosts(targets, choice, reach):
        result, row = judge.judged(probed)
        _take(choice, result, row)
        yield replace(result, facts=probed.facts)


def audit_files(saved: Saved, choice: Choice, rules: pull.Rules | None = None) -> Iterator[HostResult]:
    """Judge saved facts: a file, or those of a folder, where a bad or missing one is a host that was not reached.

    Raises factfile.BadFacts (the one file, or no file at all), BadInventory (not these hosts), located.BadFile (nothing
    selected) or OSError.
    """
    choice.facts()  # a selection that names nothing must not read as compliant
    held = rules or pull.Rules(named=saved.targets is not None)
    if not saved.is_folder:
        result, row = Judge(choice).judged(held.aged(saved.facts(), saved.path))
        _take(choice, result, row)
        return iter([result])
    if saved.targets is not None:
        _expect(saved.targets, choice)
    found, without = saved.files()
    judged = _judged_by(
        {host: (host, file) for host, file in found.items()},
        choice,
        lambda part: ((host, held.read(file, host)) for host, file in part),
        spread.processes(len(found)),
    )
    return chain((pull.missing(host, saved.path) for host in without), judged)


def _expect(targets: list[Target], choice: Choice) -> None:
    if choice.census:
        choice.census.expect({target.name: target.groups for target in targets})


def _take(choice: Choice, result: HostResult, row: fleet.Row | None) -> None:
    if choice.census and row:
        choice.census.take(result.host, row)


Probe = Callable[[list[T]], Generator[tuple[str, HostResult], None, None]]


def _judged_by(
    things: Mapping[str, T], choice: Choice, probe: Probe[T], count: int
) -> Generator[HostResult, None, None]:
    """What `probe` makes of the things (by their names), judged, in `count` processes.

    A census takes what it compares. What a process that died did not tell is a host that was not reached.
    """
    judge, left = Judge(choice), set(things)

    def work(part: Sequence[T]) -> Generator[tuple[str, HostResult, fleet.Row | None], None, None]:
        with closing(probe(list(part))) as probed:
            for name, each in probed:
                yield name, *judge.judged(each)

    every = list(things.values())
    with closing(spread.spread(spread.parts(every, count), work) if count > 1 else work(every)) as judged:
        for name, result, row in judged:
            left.discard(name)
            _take(choice, result, row)
            yield result
    for name in sorted(left):
        yield HostResult(name, "internal error", "the process that worked for this host ended early: run it again")


def saved_facts(saved: Saved) -> list[HostResult]:
    """The same facts of any age, unjudged, in the order of the hosts' names. Raises factfile.BadFacts, BadInventory."""
    if not saved.is_folder:
        return [_of_file(saved.facts())]
    found, without = saved.files()
    return by_name([*map(_read, found.values()), *(pull.missing(host, saved.path) for host in without)])


def _read(path: Path) -> HostResult:
    try:
        return _of_file(factfile.load(path, regular=True))
    except factfile.BadFacts as problem:
        return HostResult(path.stem, "bad facts", str(problem))


def _of_file(facts: HostFacts) -> HostResult:
    return HostResult(facts.host, "ok", facts=facts)


def by_name(results: Iterable[HostResult]) -> list[HostResult]:
    """Results in the order of the hosts' names."""
    return sorted(results, key=lambda result: result.host)

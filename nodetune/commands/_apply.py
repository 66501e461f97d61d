"""What `apply` and `rollback` share: what is known before, how progress is shown, and what comes out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune import apply, rollout, runs, show
from nodetune import plan as planning
from nodetune.apply import Done
from nodetune.choice import Choice, Planning
from nodetune.commands import _options, _run
from nodetune.field import How, Tell
from nodetune.gain import Gain, Gauge
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.playbook import Event
from nodetune.report import apply_data, apply_gain, apply_text, data
from nodetune.runs.diffs import unified
from nodetune.transport import Target
from nodetune.workflow import Reach


@dataclass(frozen=True)
class Work:
    """All that an apply knows before it begins."""

    targets: Sequence[Target]
    choice: Planning
    reach: Reach
    limit: str
    planned: Sequence[rollout.Planned]

    @property
    def results(self) -> list[HostResult]:
        return [each.result for each in self.planned]

    @property
    def busy(self) -> list[rollout.Planned]:
        return [each for each in self.planned if each.todo]

    @property
    def not_reached(self) -> list[HostResult]:
        return [each for each in self.results if each.state != "ok"]

    @property
    def waiting(self) -> list[Done]:
        """Steps that this run was allowed to do, and that wait for something."""
        return [
            done for each in self.planned for done in each.skipped if apply.within(done.step.fix.disruption, self.limit)
        ]


def prepare(reach: Reach, choice: Choice, how: How) -> Work:
    """Audit the hosts, and decide what to do on each."""
    wide = Planning(choice.profiles, choice.site, choice.select, choice.ignore)
    targets = reach.targets()
    planned = [rollout.prepare(result, how) for result in _run.with_facts(targets, wide, reach)]
    return Work(targets, wide, reach, how.max_disruption, planned)


def print_plan(stream: TextIO, work: Work) -> None:
    """The steps of this run as `nodetune plan` shows them, and what is left out."""
    from nodetune.report import plan_text

    steps = [step for each in work.planned for step in each.todo]
    built = {each.result.host: each.built for each in work.planned}
    plan_text.print_plan(stream, steps, planning.by_hand(work.results), work.results, built, ending="")
    apply_text.print_left(stream, [done for each in work.planned for done in each.skipped], len(work.planned) == 1)


def rehearse(work: Work, stream: TextIO, output_format: str) -> int:
    """--dry-run."""
    with progress(len(work.busy)) as tell:
        outcomes = rollout.rehearse(work.planned, work.targets, work.reach, tell)
    diffs = {host: [unified([each]) for each in outcome.gathered("diff")] for host, outcome in outcomes.items()}
    failed = {host: outcome.message for host, outcome in outcomes.items() if outcome.state != "ok"}
    problems = {host: outcome.gathered("problems") for host, outcome in outcomes.items()}
    if output_format == "json":
        stream.write(data.text(apply_data.rehearsed(diffs, problems, failed, work.results)))
    else:
        print_plan(stream, work)
        apply_text.print_diffs(stream, diffs, len(work.planned) == 1)
        apply_text.print_problems(stream, problems, failed, len(work.planned) == 1)
    if failed or any(problems.values()):
        return NOT_REACHED
    return INCOMPLETE if work.not_reached else OK


def begin(work: Work, how: How, given: Mapping[str, Any], root: Path | None) -> runs.Run:
    """Open the record of an apply, with all that is known before. Raises OSError."""
    options = {name: value for name, value in given.items() if name not in ("ask_become_pass", "site")}
    run = runs.Run.create(
        "apply",
        {**options, "site": str(given.get("site") or ""), **vars(how)},
        [each.result.host for each in work.busy],
        _lasting(given.get("inventory")),
        root,
    )
    _record_before(run, work)
    return run


def carry_out(work: Work, how: How, run: runs.Run, gauge: Gauge | None, stream: TextIO, output_format: str) -> int:
    """Do it, record it, tell it."""
    code = NOT_REACHED
    try:
        with progress(len(work.busy)) as tell:
            rolling = rollout.Rollout(work.targets, work.choice, work.reach, how, run, tell, gauge)
            done = rolling.apply(work.planned)
        run.save("after", data.audit(rolling.after()))
        run.save("outcomes", apply_data.outcomes(done))
        gain = gauge.gain() if gauge else None
        code = NOT_REACHED if rolling.left_drained else exit_code(work, done)
        code = max(code, gain.code if gain else OK)
    finally:
        run.finish(code)
    told = Told(run.id, done, rolling.interrupted(), rolling.left_drained, gain)
    if output_format == "json":
        print_json(stream, work, told)
    else:
        print_text(stream, work, told)
    return code


@dataclass(frozen=True)
class Told:
    """What an apply came to, for a report. `run` is None where nothing had to be done."""

    run: str | None
    done: Sequence[Done]
    dead: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    gain: Gain | None = None


def print_text(stream: TextIO, work: Work, told: Told) -> None:
    single = len(work.planned) == 1
    apply_text.print_interrupted(stream, told.dead, single)
    apply_text.print_outcomes(stream, told.done, single)
    if told.gain:
        asked = _options.as_typed(work.reach, None, Choice(), None)
        apply_gain.print_gain(stream, told.gain, told.done, asked, single)
    apply_text.print_drained(stream, told.drained)
    apply_text.print_way_back(stream, str(told.run))


def _lasting(inventory: str | None) -> str | None:
    """An inventory as a rollback from another folder finds it again."""
    return str(Path(inventory).absolute()) if inventory and Path(inventory).exists() else inventory


def _record_before(run: runs.Run, work: Work) -> None:
    for each in work.busy:
        if each.result.facts:
            run.save_facts(each.result.facts)
    kept = [replace(each.result, facts=None) for each in work.busy]
    run.save("before", data.audit(kept))
    steps = [step for each in work.busy for step in each.todo]
    run.save(
        "plan", data.plan(steps, planning.by_hand(kept), kept, {each.result.host: each.built for each in work.busy})
    )


def exit_code(work: Work, done: Sequence[Done]) -> int:
    """4 where something that was allowed did not come out; 3 where a host was not reached. The highest wins."""
    if not apply.reached(done, work.limit):
        return NOT_REACHED
    return INCOMPLETE if work.not_reached else OK


def print_json(stream: TextIO, work: Work, told: Told) -> None:
    known = planning.by_hand(work.results), work.results, told.dead, told.drained, told.gain
    stream.write(data.text(apply_data.applied(told.run, told.done, *known)))


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; elsewhere --yes must say it. Raises click.UsageError, click.Abort."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("this asks on a terminal; elsewhere say --yes (see --dry-run first)")
    click.confirm(question, abort=True, err=True)


class progress:  # noqa: N801  (used as a function: `with progress(5) as tell`)
    """Shows on a terminal what happens on which host; silent elsewhere."""

    def __init__(self, hosts: int) -> None:
        self._hosts, self._ended, self._failed = hosts, set[str](), set[str]()
        self._show = sys.stderr.isatty()

    def __enter__(self) -> Tell:
        return self._tell if self._show else silent

    def __exit__(self, *_: object) -> None:
        if self._show:
            click.echo("\r\033[K", nl=False, err=True)

    def _tell(self, event: Event) -> None:
        if event.status in ("failed", "unreachable"):
            self._failed.add(event.host)
            click.echo(f"\r\033[K{event.host}: {event.status}: {event.message}", err=True)
        if event.task == "End" and event.status != "started":
            self._ended.add(event.host)
        what = f"{event.task.lower()} {event.item}".strip()
        failed = f", {len(self._failed)} failed" if self._failed else ""
        line = f"{len(self._ended)} of {self._hosts} hosts{failed}  {event.host}: {what}"
        click.echo(f"\r\033[K{show.plain(line, 100)}", nl=False, err=True)


def silent(_event: Event) -> None:
    """Hears what Ansible does, and says nothing."""

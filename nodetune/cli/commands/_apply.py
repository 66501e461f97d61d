"""Share code between `apply` and `rollback`: preparation and results."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune.api.model import HostResult
from nodetune.audit import document as audit
from nodetune.audit.selection import Selection
from nodetune.cli import as_typed, verbosity
from nodetune.cli.commands import _run
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.progress import Progress
from nodetune.foundation import UserError, json_document
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remediation import document as apply_document
from nodetune.remediation import outcomes as remediation_outcomes
from nodetune.remediation import plan_document, rollout, runs
from nodetune.remediation.ansible import Event
from nodetune.remediation.host_operations import ApplyOptions
from nodetune.remediation.outcomes import StepOutcome
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.runs.connection import connection_record, lasting_inventory
from nodetune.report import apply_rows, rows
from nodetune.report.text import apply as text_apply
from nodetune.report.text import before_after as text_before_after
from nodetune.verify.before_after import BeforeAfter, BeforeAfterResult


@dataclass(frozen=True)
class Work:
    """The input of an apply."""

    targets: Sequence[Target]
    choice: PlanSelection
    reach: ConnectionOptions
    limit: str
    plans: Sequence[HostPlan]
    judged: str = ""
    """The options that select profile and site file, for proposed commands."""

    @property
    def results(self) -> list[HostResult]:
        return [each.result for each in self.plans]

    @property
    def busy(self) -> list[HostPlan]:
        return [each for each in self.plans if each.findings]

    @property
    def not_reached(self) -> list[HostResult]:
        return [each for each in self.results if each.state != "ok"]

    @property
    def skipped(self) -> list[StepOutcome]:
        """The steps that this run leaves out."""
        return rollout.left_out(self.plans)

    @property
    def waiting(self) -> list[StepOutcome]:
        """Of that, what this run was allowed to do: it waits for something."""
        return [each for each in self.skipped if remediation_outcomes.within(each.disruption, self.limit)]

    @property
    def doing(self) -> list[HostPlan]:
        """The plans without what is left out."""
        return [replace(each, left_out=()) for each in self.plans]


def prepare(reach: ConnectionOptions, choice: Selection, apply_options: ApplyOptions, judged: str = "") -> Work:
    """Audit the hosts, and decide what to do on each."""
    wide = PlanSelection(choice.profiles, choice.site, choice.select, choice.ignore)
    targets = selected_hosts(reach)
    plans = [rollout.prepare(result, apply_options, wide.added) for result in _run.with_facts(targets, wide, reach)]
    return Work(targets, wide, reach, apply_options.max_disruption, plans, judged)


def print_plan(stream: TextIO, work: Work) -> None:
    """Print the steps of this run as `nodetune plan` does, and the skipped ones."""
    from nodetune.report.text import plan

    command = f"nodetune audit {as_typed.text(work.reach)}"
    plan.print_plan(stream, work.doing, ending="", judged=work.judged, command=command)
    text_apply.print_left(stream, work.skipped, len(work.plans) == 1)


def dry_run(work: Work, stream: TextIO, output_format: str) -> int:
    """Run a dry run."""
    with Progress("dry run", len(work.busy)) as shown:
        outcomes = rollout.dry_run(work.plans, work.targets, work.reach, shown.heard)
    diffs, problems = text_apply.diffs_of(outcomes), text_apply.problems_of(outcomes)
    failed = text_apply.failures_of(outcomes)
    wrong = sum(map(len, problems.values())) + len(failed)
    if output_format == "json":
        stream.write(json_document.text(apply_document.dry_run(diffs, problems, failed, work.results)))
    else:
        print_plan(stream, work)
        text_apply.print_diffs(stream, diffs, len(work.plans) == 1)
        text_apply.print_problems(stream, problems, failed, len(work.plans) == 1)
        text_apply.print_dry_run(stream, diffs, wrong)
    if stream is not sys.stdout:
        verbosity.note(text_apply.dry_run(diffs, wrong))
    if failed or any(problems.values()):
        return END_STATE_MISSED
    return INCOMPLETE if work.not_reached else OK


@contextmanager
def recorded(
    work: Work, apply_options: ApplyOptions, given: Mapping[str, Any], root: Path | None
) -> Iterator[runs.Run]:
    """Record an apply, with all that is known before. Raise OSError."""
    options = {name: value for name, value in given.items() if name not in ("ask_become_pass", "site", "failed_of")}
    options |= {
        **connection_record(work.reach),
        "site": " ".join(map(str, given.get("site") or ())),
        **vars(apply_options),
    }
    hosts = [each.host for each in work.busy]
    with runs.recorded("apply", options, hosts, lasting_inventory(given.get("inventory")), root) as run:
        _record_before(run, work)
        yield run


def carry_out(
    work: Work,
    apply_options: ApplyOptions,
    run: runs.Run,
    before_after: BeforeAfter | None,
    stream: TextIO,
    output_format: str,
) -> int:
    """Apply the changes, record them and report."""
    with Progress("apply", len(work.busy)) as shown:
        rolling = rollout.Rollout(work.targets, work.choice, work.reach, apply_options, run, shown.heard, before_after)
        done = rolling.apply(work.plans)
    run.save("after", audit.audit(rolling.after()))
    run.save("outcomes", apply_document.outcomes(done))
    verified = before_after.result() if before_after else None
    code = END_STATE_MISSED if rolling.left_drained else exit_code(work, done)
    run.code = max(code, verified.code if verified else OK)
    told = ApplyReport(run.id, done, rolling.interrupted(), rolling.left_drained, verified)
    if output_format == "text":
        print_text(stream, work, told)
    else:
        print_data(stream, work, told, output_format)
    if stream is not sys.stdout:
        way_back = f"nodetune rollback {run.id} {as_typed.runs_folder()}".rstrip()
        verbosity.note(f"{text_apply.counts(done)}; to undo it: {way_back}")
    return run.code


@dataclass(frozen=True)
class ApplyReport:
    """The result of an apply, for a report. `run` is None if nothing had to be done."""

    run: str | None
    done: Sequence[StepOutcome]
    dead: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    verified: BeforeAfterResult | None = None


def print_text(stream: TextIO, work: Work, told: ApplyReport) -> None:
    single = len(work.plans) == 1
    text_apply.print_interrupted(stream, told.dead, single)
    text_apply.print_outcomes(stream, told.done, single)
    if told.verified:
        asked = as_typed.text(work.reach)
        text_before_after.print_gain(stream, told.verified, told.done, asked, single)
    text_apply.print_drained(stream, told.drained)
    text_apply.print_way_back(stream, str(told.run), as_typed.runs_folder())


def _record_before(run: runs.Run, work: Work) -> None:
    for each in work.busy:
        if each.result.facts:
            run.save_facts(each.result.facts)
    run.save("before", audit.audit(replace(each.result, facts=None) for each in work.busy))
    run.save("plan", plan_document.plan([each for each in work.doing if each.findings]))


def exit_code(work: Work, done: Sequence[StepOutcome]) -> int:
    """Return 4 if an allowed fix failed, 3 if a host was not reached; the highest wins."""
    if not remediation_outcomes.reached(done, work.limit):
        return END_STATE_MISSED
    return INCOMPLETE if work.not_reached else OK


def print_data(stream: TextIO, work: Work, told: ApplyReport, output_format: str) -> None:
    """Print what a tool reads: JSON, lines or CSV."""
    if output_format in rows.FORMATS:
        rows.write(stream, output_format, apply_rows.HEAD, apply_rows.rows(told.done, work.not_reached))
        return
    document = apply_document.applied(told.run, told.done, work.results, told.dead, told.drained, told.verified)
    stream.write(json_document.text(document))


def need_terminal(yes: bool) -> None:
    """Raise UserError where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise UserError("confirmation needs a terminal: use --yes (after --dry-run)")


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; elsewhere --yes is required. A no ends the command with 0. Raise UserError."""
    need_terminal(yes)
    if not yes and not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(OK)


def silent(_event: Event) -> None:
    """Take Ansible's events without output."""

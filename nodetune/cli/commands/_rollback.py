"""Roll back runs: select hosts and entries, ask, and report."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune.cli import host_options, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.progress import Progress
from nodetune.foundation import json_document, text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.hosts import nodeset, patterns
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remediation import document as apply_document
from nodetune.remediation import rollback, runs
from nodetune.remediation.ansible import Outcome
from nodetune.remediation.rollback import RollbackOptions
from nodetune.remediation.runs import standing
from nodetune.remediation.runs.connection import RECORDED, connection_record
from nodetune.report.text import apply
from nodetune.report.text.lines import Lines, console

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True)
class Work:
    """The rollback of a run: its hosts and options; `gone` are its hosts that the inventory no longer has."""

    of: runs.Run
    targets: Sequence[Target]
    reach: ConnectionOptions
    taking: RollbackOptions
    gone: Outcomes

    @property
    def title(self) -> str:
        about = self.of.about
        when = str(about.get("started", ""))[:16].replace("T", " ")
        return f"run {self.of.id} ({text.plain(about.get('command'))} of {text.plain(when)} UTC)"

    def dry_run(self) -> Outcomes:
        outcomes = rollback.roll_back(self.of, self.targets, self.reach, self.taking, None, _apply.silent)
        return {**outcomes, **self.gone}

    def carry_out(self, root: Path | None) -> tuple[str, Outcomes]:
        """Roll back and record it as a run. Return its id and the result of each host."""
        record_options = {"of": self.of.id, **vars(self.taking), **connection_record(self.reach)}
        hosts = [target.name for target in self.targets]
        with runs.recorded("rollback", record_options, hosts, self.reach.inventory, root) as run:
            run.undone = []
            with Progress("rollback", len(self.targets)) as shown:
                outcomes = rollback.roll_back(self.of, self.targets, self.reach, self.taking, run, shown.heard)
            run.undone = [host for host, outcome in outcomes.items() if _whole(outcome)]
            run.code = _code({**outcomes, **self.gone})
        return run.id, {**outcomes, **self.gone}


def roll_back(given: str, root: Path | None, options: dict[str, Any], stream: TextIO, output_format: str) -> int:
    """Roll back the run that `given` names. Raise runs.RunError, inventory.InventoryError."""
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    of, hosts = standing.last(root) if given == "last" else (runs.find(given, root), None)
    work = _work(of, hosts, options)
    _announce([work])
    if dry_run:
        return _shown(work.dry_run(), stream, output_format, [])
    if not yes:
        _apply.need_terminal(yes)
        expected = work.dry_run()
        if not any(_touched(outcome) for outcome in expected.values()):
            return _shown(expected, stream, output_format, [])
        apply.print_rollback(sys.stderr, expected, ())
        _apply.confirm(f"Roll back {work.title} on {text.count(len(work.targets), 'host')}?", yes)
    run, outcomes = work.carry_out(root)
    return _shown(outcomes, stream, output_format, [run])


def roll_back_all(spec: str, root: Path | None, options: dict[str, Any], stream: TextIO, output_format: str) -> int:
    """Roll back all remaining runs on some hosts, newest first. Raise runs.RunError, inventory.InventoryError."""
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    works: list[Work] = []
    for of, hosts in _standing_on(spec, root):
        works.append(_work(of, hosts, dict(options)))
        options["ask_become_pass"] = False  # asked once, for all of them
    works = [replace(work, reach=replace(work.reach, **_login(works[0].reach))) for work in works]
    _announce(works)
    if dry_run:
        _list(stream, works)
        told = f"dry run: {text.count(len(works), 'run')} would be rolled back on {text.plain(spec, 100)}"
        Lines(console(stream)).line((f"{told}. Nothing was changed.", "bold"))
        if stream is not sys.stdout:
            verbosity.note(f"{told}. Nothing was changed.")
        return OK
    if not yes:
        _apply.need_terminal(yes)
        _list(sys.stderr, works)
        _apply.confirm(f"Roll back {text.count(len(works), 'run')} on {spec}?", yes)
    done = [work.carry_out(root) for work in works]
    return _shown(_joined([outcomes for _, outcomes in done]), stream, output_format, [run for run, _ in done])


def _announce(works: Sequence[Work]) -> None:
    """Say which inventory each run was made with, unless the command line names one."""
    if _is_typed(click.get_current_context(), "inventory"):
        return
    for spec in dict.fromkeys(work.reach.inventory for work in works):
        ids = ", ".join(work.of.id for work in works if work.reach.inventory == spec)
        click.echo(f"inventory: {text.plain(spec or 'this host')} (run {ids})", err=True)


def _standing_on(spec: str, root: Path | None) -> list[tuple[runs.Run, list[str]]]:
    found = standing.on(patterns.expand(spec), root)
    if not found:
        known = sorted({host for _, hosts in standing.standing(runs.listing(root)) for host in hosts})
        others = f": nodetune changed {text.plain(nodeset.fold(known))}" if known else ""
        raise runs.RunError(f"nothing to roll back on {text.plain(spec, 100)}{others}")
    return found


def _login(reach: ConnectionOptions) -> dict[str, Any]:
    return {"become_password": reach.become_password} if reach.become_password else {}


def _list(stream: TextIO, works: Sequence[Work]) -> None:
    """Say which runs would be rolled back, and what each changed."""
    for work in works:
        changed = [label for target in work.targets for label in standing.labels(work.of, target.name)]
        apply.print_standing(stream, work.title, [target.name for target in work.targets], changed)


def _joined(done: Sequence[Outcomes]) -> Outcomes:
    """Join the outcomes of several rollbacks, host by host; the state and message are those of the first failure."""
    joined: dict[str, Outcome] = {}
    for outcomes in done:
        for host, outcome in outcomes.items():
            before = joined.get(host, Outcome(host))
            worse = outcome if before.state == "ok" else before
            joined[host] = replace(worse, results=(*before.results, *outcome.results))
    return joined


def _work(of: runs.Run, hosts: Sequence[str] | None, options: dict[str, Any]) -> Work:
    """Return what to roll back of a run: on its hosts, or only on these of them. Raise runs.RunError."""
    if of.state() == runs.RUNNING:
        raise runs.RunError(f"run {of.id} is still running: wait for it or stop it")
    taking = RollbackOptions(options.pop("force"), options.pop("assume_drained"))
    reach = _reach(of, options)
    wanted = of.hosts if hosts is None else hosts
    targets = _targets(of, wanted, reach)
    return Work(of, targets, reach, taking, _gone(wanted, targets))


def _reach(of: runs.Run, options: dict[str, Any]) -> ConnectionOptions:
    """Return the connection options of the run, with what is typed now in their place."""
    context = click.get_current_context()
    before = of.about.get("options", {})
    for name in RECORDED:
        if not _is_typed(context, name) and name in before:
            options[name] = before[name]
    if "vault_id" in before:
        none = {"vault_password_file": None, "ask_vault_pass": False}
        options.update({name: default for name, default in none.items() if not _is_typed(context, name)})
    if not _is_typed(context, "inventory"):
        options["inventory"] = of.about.get("inventory")
    options["transport"] = host_options.OLD_TRANSPORTS.get(options["transport"], options["transport"])
    if not options["inventory"]:
        options["limit"] = None
    return cli_options.reach(options)


def _is_typed(context: click.Context, name: str) -> bool:
    """Tell whether the command line holds an option; the run knows better than settings how its hosts were reached."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _targets(of: runs.Run, hosts: Sequence[str], reach: ConnectionOptions) -> list[Target]:
    """Return these hosts of the run that --limit selects. Raise runs.RunError when none is left."""
    found = [target for target in selected_hosts(reach) if target.name in hosts]
    if not found:
        raise runs.RunError(f"run {of.id} has none of these hosts: its hosts are {', '.join(hosts[:10])}")
    return found


def _gone(hosts: Sequence[str], targets: Sequence[Target]) -> dict[str, Outcome]:
    """Return the hosts of the run that the inventory no longer has, unless --limit or --failed-of selects hosts."""
    if any(_is_typed(click.get_current_context(), name) for name in ("limit", "failed_of")):
        return {}
    why = "not in the inventory: nothing was undone there"
    left = sorted(set(hosts) - {target.name for target in targets})
    return {host: Outcome(host, "unreachable", why) for host in left}


def _whole(outcome: Outcome) -> bool:
    """Return whether nothing of the run is left on a host."""
    return outcome.state == "ok" and not outcome.gathered("problems") and not outcome.gathered("refused")


def _touched(outcome: Outcome) -> bool:
    """Return whether there is something to undo or to say of a host."""
    return not _whole(outcome) or any(done.get("changed") for done in outcome.gathered("done"))


def _code(outcomes: Outcomes) -> int:
    left = [outcome for outcome in outcomes.values() if not _whole(outcome)]
    if any(each.state != "unreachable" or each.gathered("problems") or each.gathered("refused") for each in left):
        return END_STATE_MISSED
    return INCOMPLETE if left else OK


def _shown(outcomes: Outcomes, stream: TextIO, output_format: str, made: Sequence[str]) -> int:
    """Print what was undone, what was refused and what failed. Return the exit code."""
    if output_format == "json":
        stream.write(json_document.text(apply_document.rolled_back(made, outcomes)))
    else:
        apply.print_rollback(stream, outcomes, made)
    if stream is not sys.stdout:
        verbosity.note(apply.rolled_back(outcomes, made))
    return _code(outcomes)

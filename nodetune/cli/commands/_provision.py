"""The work of `provision` and `lock`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune.api.model import HostResult
from nodetune.audit.selection import Selection
from nodetune.cli import as_typed, progress
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.commands._run import selected_hosts
from nodetune.cli.progress import Progress
from nodetune.config import site as site_files
from nodetune.config.site_provision import Provision
from nodetune.foundation import json_document
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.foundation.yaml_lines import FileError
from nodetune.hosts import nodeset
from nodetune.hosts.target import ConnectionOptions
from nodetune.provision import STAGES, baseline, preflight, resolve, stages, steps, upgrade
from nodetune.provision import lock as locks
from nodetune.provision.preflight import Preflight, PreflightOptions
from nodetune.provision.record import FAILED, Record
from nodetune.provision.resume_command import ResumeCommand
from nodetune.provision.steps import Steps, Tools
from nodetune.remediation import ansible, batches, runs
from nodetune.remediation import document as apply_document
from nodetune.remediation.ansible import PlayOptions
from nodetune.remediation.host_operations import ApplyOptions
from nodetune.remediation.plan import PlanSelection
from nodetune.remediation.runs.connection import connection_record, lasting_inventory
from nodetune.report.text import apply as text_apply
from nodetune.report.text import provision as text_provision
from nodetune.verify import remote
from nodetune.verify.before_after import BeforeAfter
from nodetune.verify.compare import FEWEST

# lock


def lock(
    reach: ConnectionOptions, site: Sequence[Path], driver: str | None, output: Path | None, check: bool, stream: TextIO
) -> int:
    """Ask hosts, and write, show or compare what they say. Raise yaml_lines.FileError, inventory.InventoryError, OSError."""
    files = site_files.read(site)
    wanted = _site(files.provision if files else None, site)
    if driver and not driver.startswith(f"{wanted.branch}."):
        raise click.UsageError(f"--driver {driver} is not in branch {wanted.branch}, which {wanted.file} requires")
    old = locks.read(output) if output and output.exists() else {}
    targets = selected_hosts(reach)
    with Progress("lock", len(targets)) as shown:
        answers = resolve.ask(targets, reach, wanted, shown.heard, driver or "")
    gathered = resolve.gathered(answers)
    failed = [each for each in answers if each.problem]
    text_provision.print_unanswered(sys.stderr, {each.host: each.problem for each in failed}, as_typed.text(reach))
    for line in (*gathered.disagreeing, *gathered.notes):
        click.echo(line, err=True)
    found = gathered.found
    new = locks.merged(old, found)
    if output is None:
        stream.write(locks.text(new) if found else "")
    elif found:
        text_provision.print_lock(stream, old, new)
        if new != old and not check:
            locks.write(output, new)
    differs = END_STATE_MISSED if gathered.disagreeing or (check and new != old) else OK
    return max((each.code for each in failed), default=differs)


def _site(found: Provision | None, paths: Sequence[Path]) -> Provision:
    if found is None:
        raise FileError(
            f"{', '.join(map(str, paths))}: the key provision is missing: it sets the repositories and parts of hosts (docs/provision.md)"
        )
    return found


# provision


def provision(options: dict[str, Any], stream: TextIO) -> int:
    """Look, show, confirm, provision, report. Raise FileError, InventoryError, BatchError, click.UsageError."""
    upgrading, dry_run, yes = options.pop("upgrade"), options.pop("dry_run"), options.pop("yes")
    chosen = stages.Chosen(options.pop("first") or "", options.pop("only") or "")
    batching = upgrade.Batching(options.pop("canary"), options.pop("batch"), bool(options.pop("drain")))
    root, output_format = options.pop("runs_folder"), options.pop("output_format")
    batches.check(batching.batch)
    kept = {**options, "upgrade": upgrading, **vars(batching), **vars(chosen)}
    given = _given(options, batching.drain)
    if not upgrading:
        baseline.check(given.site.baseline)
    looked = preflight.check(given)
    if output_format == "text":
        text_provision.print_plan(stream, looked.decisions, looked.came, given.asked)
    if dry_run:
        return _dry_run(given, looked, chosen, stream, output_format)
    if looked.decisions:
        _apply.confirm(_question(given, looked, chosen, upgrading), yes)
    with _recorded(kept, given, root) as run:
        record, run.code, drained = _carry_out(given, looked, run, upgrading, chosen, batching)
    if output_format == "json":
        stream.write(json_document.text(record.document()))
    else:
        text_provision.print_record(stream, record.document())
        text_apply.print_drained(stream, drained)
    return run.code


def _given(options: dict[str, Any], drain: bool) -> PreflightOptions:
    site_path, lock_path = options.pop("site"), options.pop("lock")
    choice = cli_options.choice(options.pop("profiles"), site_path)
    site = _site(choice.site.provision if choice.site else None, site_path)
    locked = locks.read(lock_path)
    apply_options = ApplyOptions(
        max_disruption="reboot",
        reboot=True,
        drain_seconds=options.pop("drain_wait") * 60,
        reboot_seconds=options.pop("reboot_wait") * 60,
        assume_drained=options.pop("assume_drained"),
        canary=0,
    )
    reach = cli_options.reach(options)
    return PreflightOptions(
        selected_hosts(reach),
        reach,
        PlanSelection(choice.profiles, choice.site),
        site,
        locked,
        apply_options,
        as_typed.text(reach),
        _typed(reach, choice.profiles, site_path, lock_path, _about_jobs(drain, apply_options)),
        drain,
    )


def _typed(
    reach: ConnectionOptions, profiles: Sequence[str], site: Sequence[Path], lock: Path, about_jobs: Sequence[str]
) -> ResumeCommand:
    """Without the limit: the command that is proposed for one host names that host."""
    words = [*replace(reach, limit=None, failed_of="").words, *Selection(tuple(profiles), files=tuple(site)).words]
    return ResumeCommand(shlex.join([*words, *about_jobs]), str(lock), bool(reach.inventory))


def _about_jobs(drain: bool, apply_options: ApplyOptions) -> list[str]:
    """Return the words of the command line that say what happens to the jobs of a scheduler."""
    return [*(["--drain", "slurm"] if drain else []), *(["--assume-drained"] if apply_options.assume_drained else [])]


def _question(given: PreflightOptions, looked: Preflight, chosen: stages.Chosen, upgrading: bool) -> str:
    hosts = nodeset.fold(looked.decisions)
    moved = len({name for each in looked.decisions.values() for name, _, _ in each.changes()})
    what = "Upgrade" if upgrading else "Provision"
    parts = [f"{moved} packages"] if "packages" in chosen or upgrading else []
    if "reboot" in chosen or upgrading:
        parts.append("a reboot if the driver needs it")
    if not upgrading:
        site = given.site
        done = {"tune": True, "guard": bool(site.guard), "join": site.join != "none"}
        parts += [stage for stage, wanted in done.items() if wanted and stage in chosen]
    else:
        parts.append(f"measured {FEWEST} times before and after")
    return f"{what} {len(looked.decisions)} hosts ({plain_text.plain(hosts, 60)}): {', '.join(parts)}?"


def _recorded(kept: Mapping[str, Any], given: PreflightOptions, root: Path | None) -> AbstractContextManager[runs.Run]:
    """Record the command; the record keeps the way to the hosts, which a rollback takes again."""
    options = {name: value for name, value in kept.items() if name not in ("ask_become_pass", "inventory")}
    lasting = lasting_inventory(kept.get("inventory"))
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    plain |= {"site": " ".join(map(str, kept["site"])), **connection_record(given.reach)}
    return runs.recorded("provision", plain, [target.name for target in given.targets], lasting, root)


def _carry_out(
    given: PreflightOptions,
    looked: Preflight,
    run: runs.Run,
    upgrading: bool,
    chosen: stages.Chosen,
    batching: upgrade.Batching,
) -> tuple[Record, int, dict[str, str]]:
    """Run the stages. Return the record, the exit code, and the hosts that stay drained with the reason."""
    hosts = sorted(target.name for target in given.targets)
    record = Record(run, hosts, upgrade.STAGES if upgrading else STAGES, given.typed, upgrading)
    counted = [stage for stage in STAGES if stage in chosen]
    with Progress("provision", len(hosts), stages=0 if upgrading else len(counted), plays=False) as shown:
        tools = Tools(remote.measure, shown.heard, progress.measuring)
        doing = Steps(given, looked, run, tools)

        def say(stage: str, hosts: Sequence[str]) -> None:
            shown.stage(stage, len(hosts))

        if upgrading:
            wanted = doing.measured(FEWEST)
            kept = upgrade.VerifyRecord(run, wanted, given.asked)
            before_after = BeforeAfter(wanted, given.targets, given.reach, remote.measure, progress.measuring, kept)
            code = upgrade.Upgrade(doing, record, before_after, kept, say).run(batching)
        else:
            code = stages.provision(doing, record, chosen, say, batching.drain)
        for host in hosts:
            broke = record.broke_at(host)
            shown.done(host, f"{broke} failed" if broke else "ok")
    return record, max(code, END_STATE_MISSED if doing.operations.left_drained else OK), doing.operations.left_drained


# --dry-run


def _dry_run(
    given: PreflightOptions, looked: Preflight, chosen: stages.Chosen, stream: TextIO, output_format: str
) -> int:
    """Run Ansible in check mode for the packages; describe the later stages."""
    outcomes = {}
    going = [target for target in given.targets if target.name in looked.decisions]
    if going and "packages" in chosen:
        variables = {host: {**each.variables(), "nodetune_guard": {}} for host, each in looked.decisions.items()}
        options = PlayOptions(given.reach.options, given.reach.forks, steps.PLAY_SECONDS, check=True)
        with Progress("dry run", len(going)) as shown:
            outcomes = ansible.play("provision", going, variables, options, on_event=shown.heard)
    failed, diffs = text_apply.failures_of(outcomes), text_apply.diffs_of(outcomes)
    if output_format == "json":
        refused = {host: each.message for host, each in looked.came.items() if not each.ok and each.code != INCOMPLETE}
        unknown = [
            HostResult(host, FAILED, each.message) for host, each in looked.came.items() if each.code == INCOMPLETE
        ]
        told = {**{host: [] for host in refused}, **diffs}
        stream.write(json_document.text(apply_document.dry_run(told, {}, {**refused, **failed}, unknown)))
    else:
        text_apply.print_diffs(stream, diffs, len(given.targets) == 1)
        text_apply.print_problems(stream, {}, failed, len(given.targets) == 1)
        left = [stage for stage in STAGES[2:] if stage in chosen]
        problems = len(failed) + sum(not each.ok for each in looked.came.values())
        text_provision.print_rest(stream, left, given.site, looked.decisions, problems)
    lost = max((each.code for each in looked.came.values()), default=OK)
    return max(lost, END_STATE_MISSED if failed else OK)

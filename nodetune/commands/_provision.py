"""What `provision` and `lock` do with their options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click

from nodetune import apply, measuring, nodeset, playbook, profile, runs, show
from nodetune.choice import Choice, Planning
from nodetune.commands import _apply, _options
from nodetune.field import How
from nodetune.gain import Gauge
from nodetune.located import BadFile
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.playbook import Way
from nodetune.provision import STAGES, ask, baseline, look, stages, upgrade, work
from nodetune.provision import lock as locks
from nodetune.provision.look import Given, Looked
from nodetune.provision.record import FAILED, Record
from nodetune.provision.typed import Typed
from nodetune.provision.work import Tools, Work
from nodetune.report import apply_data, apply_text, data, provision_text
from nodetune.runs.diffs import unified
from nodetune.siteprovision import Provision
from nodetune.verdict.compare import FEWEST
from nodetune.workflow import Reach

WAY = ("limit", "user", "become", "transport")
"""Options that a rollback takes again from the record."""


# lock


def lock(reach: Reach, site: Path, driver: str | None, output: Path | None, check: bool, stream: TextIO) -> int:
    """Ask hosts, and write, show or compare what they say. Raises located.BadFile, inventory.BadInventory, OSError."""
    wanted = _site(profile.read(site).provision, site)
    if driver and not driver.startswith(f"{wanted.branch}."):
        raise click.UsageError(f"--driver {driver} is not of branch {wanted.branch}, which {site} wants")
    old = locks.read(output) if output and output.exists() else {}
    targets = reach.targets()
    with _apply.progress(len(targets)) as tell:
        answers = ask.ask(targets, reach, wanted, tell, driver or "")
    found, odd = ask.gathered(answers)
    failed = [each for each in (*answers, *odd) if each.problem]
    for each in failed:
        click.echo(f"{each.host}: {each.problem}", err=True)
    new = locks.merged(old, found)
    if output is None:
        stream.write(locks.text(new) if found else "")
    elif found:
        provision_text.print_lock(stream, old, new)
        if new != old and not check:
            locks.write(output, new)
    differs = NOT_REACHED if check and new != old else OK
    return max((each.code for each in failed), default=differs)


def _site(found: Provision | None, path: Path) -> Provision:
    if found is None:
        raise BadFile(
            f"{path}: the key provision is missing: which repositories and parts do hosts get? (docs/provision.md)"
        )
    return found


# provision


def provision(options: dict[str, Any], stream: TextIO) -> int:
    """Look, show, ask, do, tell. Raises located.BadFile, inventory.BadInventory, apply.BadBatch, click.UsageError."""
    upgrading, dry_run, yes = options.pop("upgrade"), options.pop("dry_run"), options.pop("yes")
    chosen = stages.Chosen(options.pop("first") or "", options.pop("only") or "")
    waves = upgrade.Waves(options.pop("canary"), options.pop("batch"), bool(options.pop("drain")))
    root, output_format = options.pop("runs_folder"), options.pop("output_format")
    apply.waves(["any"], waves.canary, waves.batch)  # a wrong --batch is told before any host is asked
    kept = {**options, "upgrade": upgrading, **vars(waves), **vars(chosen)}
    given = _given(options, waves.drain)
    if not upgrading:
        baseline.check(given.site.baseline)
    looked = look.look(given)
    if output_format == "text":
        provision_text.print_plan(stream, looked.decisions, looked.came)
    if dry_run:
        return _rehearse(given, looked, chosen, stream, output_format)
    if looked.decisions:
        _apply.confirm(_question(given, looked, chosen, upgrading), yes)
    run = _begin(kept, given, root)
    code = NOT_REACHED
    try:
        record, code, drained = _carry_out(given, looked, run, upgrading, chosen, waves)
    finally:
        run.finish(code)
    if output_format == "json":
        stream.write(data.text(record.document()))
    else:
        provision_text.print_record(stream, record.document())
        apply_text.print_drained(stream, drained)
    return code


def _given(options: dict[str, Any], drain: bool) -> Given:
    site_path, lock_path = options.pop("site"), options.pop("lock")
    choice = _options.choice(options.pop("profiles"), site_path)
    site = _site(choice.site.provision if choice.site else None, site_path)
    locked = locks.read(lock_path)
    how = How(
        max_disruption="reboot",
        reboot=True,
        drain_seconds=options.pop("drain_wait") * 60,
        reboot_seconds=options.pop("reboot_wait") * 60,
        assume_drained=options.pop("assume_drained"),
        canary=0,
    )
    reach = _options.reach(options)
    return Given(
        reach.targets(),
        reach,
        Planning(choice.profiles, choice.site),
        site,
        locked,
        how,
        shlex.join([*shlex.split(_options.as_typed(reach, None, Choice(), None)), *_login(reach)]),
        _typed(reach, Choice(choice.profiles), site_path, lock_path, _about_jobs(drain, how)),
        drain,
    )


def _typed(reach: Reach, choice: Choice, site: Path, lock: Path, about_jobs: Sequence[str]) -> Typed:
    """Without the limit: the command that is proposed for one host names that host."""
    words = shlex.split(_options.as_typed(replace(reach, limit=None), None, choice, site))
    return Typed(shlex.join([*words, *_login(reach), *about_jobs]), str(lock), bool(reach.inventory))


def _login(reach: Reach) -> list[str]:
    """The words that say as whom."""
    asked = ["-K"] if reach.become_password is not None else []
    return [*asked, *(["-u", reach.user] if reach.user else [])]


def _about_jobs(drain: bool, how: How) -> list[str]:
    """The words that say what becomes of a scheduler's jobs."""
    return [*(["--drain", "slurm"] if drain else []), *(["--assume-drained"] if how.assume_drained else [])]


def _question(given: Given, looked: Looked, chosen: stages.Chosen, upgrading: bool) -> str:
    hosts = nodeset.fold(looked.decisions)
    moved = len({name for each in looked.decisions.values() for name, _, _ in each.changes()})
    what = "Upgrade" if upgrading else "Provision"
    parts = [f"{moved} packages"] if "packages" in chosen or upgrading else []
    if "reboot" in chosen or upgrading:
        parts.append("a reboot where the driver needs it")
    if not upgrading:
        site = given.site
        done = {"tune": True, "guard": bool(site.guard), "join": site.join != "none"}
        parts += [stage for stage, wanted in done.items() if wanted and stage in chosen]
    else:
        parts.append(f"measured {FEWEST} times before and after")
    return f"{what} {len(looked.decisions)} hosts ({show.plain(hosts, 60)}): {', '.join(parts)}?"


def _begin(kept: Mapping[str, Any], given: Given, root: Path | None) -> runs.Run:
    """Open the record; it keeps the way to the hosts, which a rollback takes again."""
    options = {name: value for name, value in kept.items() if name not in ("ask_become_pass", "inventory")}
    inventory = kept.get("inventory")
    lasting = str(Path(inventory).absolute()) if inventory and Path(inventory).exists() else inventory
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    return runs.Run.create("provision", plain, [target.name for target in given.targets], lasting, root)


def _carry_out(
    given: Given, looked: Looked, run: runs.Run, upgrading: bool, chosen: stages.Chosen, waves: upgrade.Waves
) -> tuple[Record, int, dict[str, str]]:
    """The record, the exit code, and the hosts that stay drained with the reason."""
    hosts = sorted(target.name for target in given.targets)
    record = Record(run, hosts, upgrade.STAGES if upgrading else STAGES, given.typed, upgrading)
    with _apply.progress(len(hosts)) as tell:
        tools = Tools(measuring.measure, tell, _hear)
        doing = Work(given, looked, run, tools)
        if upgrading:
            wanted = doing.measured(FEWEST)
            kept = upgrade.Kept(run, wanted, given.asked)
            gauge = Gauge(wanted, given.targets, given.reach, measuring.measure, _hear, kept)
            code = upgrade.Upgrade(doing, record, gauge, kept, _say).run(waves)
        else:
            code = stages.provision(doing, record, chosen, _say, waves.drain)
    return record, max(code, NOT_REACHED if doing.field.left_drained else OK), doing.field.left_drained


def _say(stage: str, hosts: Sequence[str]) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{stage}: {nodeset.fold(hosts)}", err=True)


def _hear(host: str, text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{show.plain(f'measuring {host}: {text}', 100)}", nl=False, err=True)


# --dry-run


def _rehearse(given: Given, looked: Looked, chosen: stages.Chosen, stream: TextIO, output_format: str) -> int:
    """Ansible's check mode for the packages; for the stages after it, what they would be."""
    outcomes = {}
    going = [target for target in given.targets if target.name in looked.decisions]
    if going and "packages" in chosen:
        variables = {host: {**each.variables(), "nodetune_guard": {}} for host, each in looked.decisions.items()}
        way = Way(given.reach.options, min(given.reach.forks, playbook.FORKS), work.PLAY_SECONDS, check=True)
        with _apply.progress(len(going)) as tell:
            outcomes = playbook.play("provision", going, variables, way, tell)
    failed = {host: each.message for host, each in outcomes.items() if each.state != "ok"}
    diffs = {host: [unified([each]) for each in outcome.gathered("diff")] for host, outcome in outcomes.items()}
    if output_format == "json":
        refused = {host: each.message for host, each in looked.came.items() if not each.ok and each.code != INCOMPLETE}
        unknown = [
            HostResult(host, FAILED, each.message) for host, each in looked.came.items() if each.code == INCOMPLETE
        ]
        told = {**{host: [] for host in refused}, **diffs}
        stream.write(data.text(apply_data.rehearsed(told, {}, {**refused, **failed}, unknown)))
    else:
        apply_text.print_diffs(stream, diffs, len(given.targets) == 1)
        apply_text.print_problems(stream, {}, failed, len(given.targets) == 1)
        provision_text.print_rest(stream, [stage for stage in STAGES[2:] if stage in chosen], given.site)
    lost = max((each.code for each in looked.came.values()), default=OK)
    return max(lost, NOT_REACHED if failed else OK)

"""`nodetune plan`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune.api.model import HostResult
from nodetune.audit import auditor
from nodetune.audit.summary import INCOMPLETE, OK
from nodetune.cli import as_typed, verbosity
from nodetune.cli import options as cli_options
from nodetune.facts.saved import Saved
from nodetune.hosts.target import ConnectionOptions
from nodetune.remediation import plan as planning
from nodetune.remediation.plan import PlanSelection


@click.command("plan")
@cli_options.hosts_or_nodes
@cli_options.saved_facts
@cli_options.selection
@click.option("--files", is_flag=True, help="Show the full content of every file.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the changes to this folder, as plain files and as an Ansible role.",
)
@click.option(
    "--scheduler-diff",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what to change in the configuration of Slurm and the kubelet to this file, as a diff to review.",
)
@cli_options.output_format
@cli_options.output
@verbosity.progress_option
def command(
    facts_path: Path | None,
    files: bool,
    export: Path | None,
    scheduler_diff: Path | None,
    output_format: str,
    output: Path | None,
    **options: Any,
) -> int:
    """Show planned changes and their disruption; change nothing."""
    reach = cli_options.reach(options)
    choice = cli_options.choice(**options)
    wide = PlanSelection(choice.profiles, choice.site, choice.select, choice.ignore)
    probed = _probed(facts_path, reach, wide)
    plans = [planning.plan(each, site=wide.added).without_facts() for each in probed]
    if scheduler_diff:
        _propose(probed, scheduler_diff)
    if export:
        from nodetune.remediation import export as exporting

        verbosity.note(exporting.write(export, plans))
    from nodetune.report.text import plan

    with cli_options.writing(output) as stream:
        if output_format == "json":
            from nodetune.foundation import json_document
            from nodetune.remediation import plan_document

            stream.write(json_document.text(plan_document.plan(plans)))
        else:
            asked = as_typed.text(reach, facts_path, choice.profiles, options["site"])
            judged = as_typed.judged(choice.profiles, options["site"])
            plan.print_plan(stream, plans, files=files, judged=judged, command=f"nodetune audit {asked}")
        if output:
            verbosity.note(f"{plan.totals(plans)}. Nothing was changed.")
    return OK if all(each.result.state == "ok" for each in plans) else INCOMPLETE


def _propose(probed: list[HostResult], file: Path) -> None:
    """Write the diff for the scheduler's files, which belong to a cluster and not to a host."""
    from nodetune.remediation import scheduler_diff

    with cli_options.writing(file) as stream:
        count = scheduler_diff.write(probed, stream)
    verbosity.note(f"{file}: {count} {'change' if count == 1 else 'changes'} proposed for Slurm and the kubelet")


def _probed(facts_path: Path | None, reach: ConnectionOptions, wide: PlanSelection) -> list[HostResult]:
    """Judge hosts or saved facts, keep their facts, and sort by host name."""
    if facts_path is None:
        from nodetune.cli.commands import _run  # inventories, SSH and Slurm: saved facts need none of them
        from nodetune.cli.connections import selected_hosts

        return _run.with_facts(selected_hosts(reach), wide, reach)
    wide.facts()  # a selection that names nothing must not read as a plan with nothing to do
    saved = Saved(facts_path, reach.inventory, reach.limit, reach.vault)
    auditor.expect_saved(saved, wide)
    judge = auditor.Auditor(wide)
    return [_with_facts(judge.judged(each)[0], each) for each in auditor.saved_facts(saved) if reach.wants(each.host)]


def _with_facts(judged: HostResult, saved: HostResult) -> HostResult:
    return replace(judged, facts=saved.facts) if judged.state == "ok" else judged

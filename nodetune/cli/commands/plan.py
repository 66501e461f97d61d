"""`nodetune plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodetune.api.model import HostResult
from nodetune.cli import options as cli_options
from nodetune.cli import proposed_options, requests, verbosity
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document, text
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.remediation import plan as planning
from nodetune.remediation import plan_document
from nodetune.remediation.plan import HostPlan
from nodetune.remediation.plan_hosts import plan_hosts
from nodetune.remediation.request import BY_NAME, PlanRequest
from nodetune.report.sections import CommandOptions

if TYPE_CHECKING:
    from nodetune.remediation.fabric_file import Fabric


@requests.command("plan", PlanRequest)
@cli_options.hosts_or_pods
@cli_options.saved_facts
@cli_options.selection
@click.option(
    "--max-disruption",
    type=click.Choice(list(BY_NAME)),
    default=PlanRequest.max_disruption,
    show_default=True,
    help="Leave out fixes with more disruption.",
)
@click.option("--files", is_flag=True, help="Show the full content of every file.")
@click.option(
    "--export",
    **cli_options.FOLDER,
    help="Write the changes to this folder, as plain files, an Ansible role, and a test by testinfra.",
)
@click.option(
    "--scheduler-diff",
    **cli_options.FILE,
    help="Write what to change in the configuration of Slurm and the kubelet to this file, as a diff to review.",
)
@click.option(
    "--fabric",
    **cli_options.FILE,
    multiple=True,
    help="With --scheduler-diff: the topology for Slurm by the InfiniBand fabric, which `ibnetdiscover > FILE` saved. One file a subnet.",
)
@cli_options.output_format
@cli_options.output
@verbosity.progress_option
def command(
    request: PlanRequest,
    files: bool,
    export: Path | None,
    output_format: str,
    output: Path | None,
) -> int:
    """Show planned changes and their disruption; change nothing.

    Exit code: 0 done, 2 usage, 3 hosts were not reached, or checks are unknown.
    """
    fabric = _fabric(request.fabric)
    probed, plans = plan_hosts(request, Terminal())
    if request.scheduler_diff:
        _propose(probed, request.scheduler_diff, fabric)
    if export:
        from nodetune.remediation import export as exporting

        verbosity.note(exporting.write(export, plans))
    from nodetune.report.text import plan

    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(plan_document.plan(plans)))
        else:
            asked = proposed_options.text(request.connection, request.facts_path, request.selection)
            selected = proposed_options.selected(request.selection)
            commands = CommandOptions(asked, selected, saved=request.facts_path is not None)
            plan.print_plan(stream, plans, commands, files=files, following=_following(plans, commands))
        if output:
            verbosity.note(f"{plan.totals(plans)}. Nothing was changed.")
    judged_all = not planning.unknown(each.result for each in plans)
    return OK if judged_all and all(each.result.state == "ok" for each in plans) else INCOMPLETE


def _following(plans: Sequence[HostPlan], commands: CommandOptions) -> str:
    """Return the audit that says what is left where nothing is planned; empty if nothing is."""
    results = [each.result for each in plans]
    left = planning.unknown(results) or any(each.state != "ok" or any(each.failing()) for each in results)
    return commands.audit() if left and not any(each.findings for each in plans) else ""


def _fabric(files: tuple[Path, ...]) -> Fabric | None:
    if not files:
        return None
    from nodetune.remediation import fabric_file

    return fabric_file.read(*files)


def _propose(probed: list[HostResult], file: Path, fabric: Fabric | None) -> None:
    """Write the diff for the scheduler's files, which belong to a cluster and not to a host."""
    from nodetune.remediation import scheduler_diff

    with cli_options.writing(file) as stream:
        count = scheduler_diff.write(probed, stream, fabric)
    verbosity.note(f"{file}: {text.count(count, 'change')} proposed for Slurm and the kubelet")

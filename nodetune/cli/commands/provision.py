"""`nodetune provision`."""

from pathlib import Path

import click

from nodetune.cli import change_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document
from nodetune.provision import STAGES
from nodetune.provision.request import ProvisionRequest

STAGE = click.Choice(STAGES)


@requests.command("provision", ProvisionRequest)
@cli_options.changed_hosts
@click.option(
    "-p",
    "--profile",
    "profiles",
    cls=settings.Setting,
    multiple=True,
    metavar="NAME",
    help="Profile to tune for. May be repeated. Default: training.",
)
@change_options.provision_site
@click.option(
    "--lock",
    **cli_options.FILE,
    required=True,
    help="Lock file with package versions, written by nodetune lock.",
)
@click.option("--from", "first", type=STAGE, help="Start with this stage.")
@click.option("--only", type=STAGE, help="Run only this stage.")
@click.option(
    "--upgrade",
    is_flag=True,
    help="Upgrade hosts in service, by --canary and --batch; measure before and after, and roll back if slower.",
)
@change_options.drain
@change_options.waits(ProvisionRequest)
@change_options.assume_drained
@change_options.batches(ProvisionRequest)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Run Ansible in check mode for packages, and show the plan for the rest. Changes nothing.",
)
@change_options.agree
@change_options.runs_folder
@cli_options.history
@cli_options.output_format
@cli_options.output
@verbosity.progress_option
def command(request: ProvisionRequest, dry_run: bool, yes: bool, output_format: str, output: Path | None) -> int:
    """Install, tune, verify and guard bare GPU servers.

    \b
    nodetune provision -i new -b --site site.yml --lock versions.lock --dry-run
    nodetune provision -i new -b --site site.yml --lock versions.lock
    nodetune provision -i new -b --site site.yml --lock versions.lock --from verify
    nodetune provision -i prod -b --site site.yml --lock newer.lock --upgrade --drain slurm

    Each host passes these stages: preflight, packages, reboot, tune, audit, verify, baseline, guard, join. Stages can be
    repeated. A host that fails a stage stops there; the others continue. Drivers from other sources are not changed.
    Exit code: 0 done, 2 usage, 3 hosts not reached or facts unknown, 4 the end state was not reached, 5 below target
    (with --upgrade: slower than before, and rolled back).
    """
    from nodetune.cli.commands import _apply, _provision
    from nodetune.provision import preflight, run
    from nodetune.report.text import provision

    settings.announce()
    show = Terminal()
    with cli_options.writing(output) as stream:
        found = preflight.prepare(request, show)
        if output_format == "text":
            _provision.print_plan(stream, found)
        if dry_run:
            outcomes, code = run.dry_run(found, show)
            _provision.print_dry_run(stream, found, outcomes, output_format)
            return code
        if found.decisions:
            _apply.confirm(f"{found.summary}?", yes)
        report = run.carry_out(found, show)
        if output_format == "json":
            stream.write(json_document.text(report.document))
        else:
            provision.print_record(stream, report.document, report.drained)
        return report.code

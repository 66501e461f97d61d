"""`nodetune provision`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options
from nodetune.provision import STAGES


@click.command("provision")
@_options.hosts
@click.option(
    "-p",
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="Profile to tune by (several stack up) instead of training.",
)
@_options.provision_site
@click.option(
    "--lock",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The versions, as nodetune lock wrote them.",
)
@click.option("--from", "first", type=click.Choice(STAGES), help="Begin with this stage.")
@click.option("--only", type=click.Choice(STAGES), help="Go through this stage only.")
@click.option(
    "--upgrade", is_flag=True, help="Hosts that work: wave by wave, measured before and after, taken back if worse."
)
@_options.drain
@_options.drain_wait
@_options.reboot_wait
@_options.assume_drained
@click.option("--batch", default="", metavar="N|N%", help="With --upgrade: hosts at a time. Default: all.")
@click.option(
    "--canary",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="With --upgrade: hosts that go first, alone.",
)
@click.option(
    "--dry-run", is_flag=True, help="Ansible's check mode for the packages, the plan for the rest; changes nothing."
)
@_options.agree
@_options.runs_folder
@_options.output_format
@_options.output
def command(output: Path | None, **options: Any) -> int:
    """Bring bare GPU servers into service: packages, reboot, tuning, audit, measurements, guard, scheduler.

    \b
    nodetune provision -i new -b --site site.yml --lock versions.lock --dry-run
    nodetune provision -i new -b --site site.yml --lock versions.lock
    nodetune provision -i new -b --site site.yml --lock versions.lock --from verify
    nodetune provision -i prod -b --site site.yml --lock newer.lock --upgrade --drain slurm

    Stages, on each host in this order: look, packages, reboot, tune, audit, verify, baseline, guard, join. Each can be gone
    through again; a host that fails stops there, and the others go on. A driver of somebody else's is left alone.
    Exit code: 0 done, 2 usage, 3 hosts not reached or facts unknown, 4 the end state was not reached, 5 a measurement
    fell short (with --upgrade: it became slower, and was taken back).
    """
    from nodetune.commands import _provision, _run

    if options["upgrade"] and (options["first"] or options["only"]):
        raise click.UsageError("--upgrade goes through all of its stages: leave --from and --only out")
    if options["first"] and options["only"]:
        raise click.UsageError("--from and --only exclude one another")
    with _run.output_stream(output) as stream:
        return _provision.provision(options, stream)

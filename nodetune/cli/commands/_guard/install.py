"""`nodetune guard install`: the guard put on nodes, or brought up to date."""

import sys

import click

from nodetune.cli import change_options, proposed_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.commands._guard import _settings
from nodetune.cli.terminal import Terminal
from nodetune.guard.deploy import install
from nodetune.guard.deploy.request import InstallRequest
from nodetune.report.text import guard


@requests.command("install", InstallRequest)
@cli_options.changed_hosts
@cli_options.judging
@_settings.policy
@click.option(
    "--python", callback=_settings.full_path, metavar="PATH", help="Path of Python 3.9 or newer on the nodes."
)
@click.option("--write-slurm-conf", is_flag=True, help="Add the lines to slurm.conf instead of printing them.")
@click.option("--reconfigure", is_flag=True, help="Run scontrol reconfigure afterwards.")
@click.option("--timer", is_flag=True, help="Also run the gating checks every minute from a systemd timer.")
@click.option(
    "--textfile",
    callback=_settings.full_path,
    metavar="FILE",
    default=InstallRequest.textfile,
    help="Metrics file for node-exporter that the timer writes, such as /var/lib/prometheus/node-exporter/nodetune.prom.",
)
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@change_options.agree
@change_options.runs_folder
@cli_options.history
@verbosity.progress_option
def command(request: InstallRequest, history: str, dry_run: bool, yes: bool) -> int:
    """Install or upgrade the guard on nodes.

    \b
    nodetune guard install -i prod -b --dry-run               show all changes
    nodetune guard install -i prod -b                         observe: log decisions, hold no job
    nodetune guard install -i prod -b --mode enforce          keep jobs off failing nodes

    Never restarts slurmd. `nodetune guard uninstall` removes the guard; `nodetune rollback RUN` undoes one run.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something could not be installed.
    """
    settings.announce()
    prepared = install.prepare(request, Terminal())
    guard.print_prepared(sys.stdout, prepared, proposed_options.text(request.connection), timer=request.timer)
    if dry_run:
        would = install.dry_run(request, prepared)
        guard.print_install_dry_run(sys.stdout, prepared, would, lines=not request.write_slurm_conf)
        return would.code
    if not prepared.nodes:
        return prepared.code
    modes = ", ".join(sorted({policy["mode"] for policy in prepared.policies.values()}))
    _apply.confirm(f"Install the guard ({modes}) on {prepared.summary}?", yes)
    report = install.carry_out(request, prepared, Terminal())
    guard.print_installed(sys.stdout, prepared, report)
    _apply.print_way_back(sys.stdout, report.run_id, request.runs_folder)
    _apply.keep_run(history, report.run_id, request.runs_folder)
    return report.code

"""`nodetune guard uninstall`: the guard taken off nodes."""

import sys

import click

from nodetune.cli import change_options, proposed_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.terminal import Terminal
from nodetune.guard.deploy import uninstall
from nodetune.guard.deploy.request import UninstallRequest
from nodetune.report.text import guard


@requests.command("uninstall", UninstallRequest)
@cli_options.changed_hosts
@click.option("--reconfigure", is_flag=True, help="Run scontrol reconfigure before programs are removed.")
@click.option("--dry-run", is_flag=True, help="Show every change; change nothing.")
@change_options.agree
@change_options.runs_folder
@cli_options.history
@verbosity.progress_option
def command(request: UninstallRequest, history: str, dry_run: bool, yes: bool) -> int:
    """Remove the guard from nodes.

    Restores slurm.conf, then removes policy and programs. Programs stay where the running Slurm still calls them:
    without them, Slurm would drain the node. Journals and the program archive stay in /var/lib/nodetune, so that
    `nodetune rollback RUN` can restore the guard; its state in /run/nodetune/guard until the next boot, and its records
    in a shared folder.

    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 something was not removed.
    """
    settings.announce()
    hosts = uninstall.prepare(request, Terminal())
    asked = proposed_options.text(request.connection)
    guard.print_not_reached(sys.stdout, hosts.lost, asked)
    guard.print_bare(sys.stdout, hosts.nodes)
    guard.print_drained(sys.stdout, *uninstall.drained(hosts), asked)
    if dry_run:
        would = uninstall.dry_run(request, hosts)
        guard.print_dry_run(sys.stdout, would)
        return would.code
    if not hosts.nodes:
        return hosts.code
    _apply.confirm(f"Remove the guard from {hosts.summary}?", yes)
    report = uninstall.carry_out(request, hosts, Terminal())
    guard.print_changes(sys.stdout, report)
    guard.print_left(sys.stdout, report)
    _apply.print_way_back(sys.stdout, report.run_id, request.runs_folder)
    _apply.keep_run(history, report.run_id, request.runs_folder)
    return report.code

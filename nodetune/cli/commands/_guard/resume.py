"""`nodetune guard resume`."""

import sys
from collections.abc import Sequence

import click

from nodetune.cli import change_options, host_options, proposed_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.terminal import Terminal
from nodetune.foundation import nodeset, text
from nodetune.foundation.exit_codes import OK
from nodetune.guard.deploy import document, resume
from nodetune.guard.deploy.request import ResumeRequest
from nodetune.guard.deploy.resume import MAY, Fate
from nodetune.history import keeping
from nodetune.report.text import guard


@requests.command("resume", ResumeRequest)
@click.argument("nodes", nargs=-1)
@host_options.slurm_nodes
@cli_options.judging
@click.option("--dry-run", is_flag=True, help="Show which nodes would be resumed; change nothing.")
@change_options.agree
@cli_options.history
@cli_options.printed_format
@verbosity.progress_option
def command(request: ResumeRequest, history: str, dry_run: bool, yes: bool, output_format: str) -> int:
    """Resume drained nodes that pass their checks again.

    \b
    nodetune guard resume -b                 all nodes that the guard drained
    nodetune guard resume -b 'gpu[001-016]'  only these nodes
    nodetune guard resume -b --yes           in a cron job: without a question
    nodetune guard resume -b -i prod         connect as the inventory specifies

    Only drains that the guard recorded on the node, with the same reason and time, are considered. All others stay.
    The policy installed on a node applies, as before a job; --profile and --site apply only to nodes without a policy.
    Exit code: 0 all resumed, 1 some fail their checks, 2 usage, 3 not reached or unknown.
    """
    settings.announce()
    judged, words = resume.prepare(request, Terminal()), proposed_options.judged(request.selection)
    expected = [fate for _, fate in judged]
    if not dry_run:
        _confirm(expected, words, yes)
    found = []
    for fate in expected if dry_run else resume.carry_out(judged):
        found.append(fate)
        if output_format == "text":
            guard.print_fate(sys.stdout, fate, words)
    if not dry_run and history:
        keeping.keep(history, Terminal(), actions=resume.actions(found))
    if output_format == "json":
        click.echo(document.resume(found, dry_run), nl=False)
    elif not found:
        click.echo("no node is drained by the guard")
    elif dry_run:
        guard.print_resumable(sys.stdout, found)
    return max((fate.code for fate in found), default=OK)


def _confirm(expected: Sequence[Fate], judged: str, yes: bool) -> None:
    """Print what would happen to the nodes, then ask. `judged` are the options of profile and site file."""
    names = [fate.name for fate in expected if fate.state == MAY]
    if not names or yes:
        return
    _apply.need_terminal(yes)
    for fate in expected:
        guard.print_fate(sys.stderr, fate, judged)
    _apply.confirm(f"Resume {text.count(len(names), 'node')} ({nodeset.fold(names)})?", yes)

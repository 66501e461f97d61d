"""`nodetune guard resume`."""

from __future__ import annotations

import sys

import click

from nodetune.cli import options as cli_options
from nodetune.cli import proposed_options, requests, settings, verbosity
from nodetune.cli.terminal import Terminal
from nodetune.foundation.exit_codes import OK
from nodetune.guard.deploy import document, resume
from nodetune.guard.deploy.request import ResumeRequest
from nodetune.report.text import guard


@requests.command("resume", ResumeRequest)
@click.argument("nodes", nargs=-1)
@cli_options.hosts
@cli_options.judging
@click.option("--dry-run", is_flag=True, help="Show which nodes would be resumed; change nothing.")
@cli_options.printed_format
@verbosity.progress_option
def command(request: ResumeRequest, output_format: str) -> int:
    """Resume drained nodes that pass their checks again.

    \b
    nodetune guard resume -b                 all nodes that the guard drained
    nodetune guard resume -b 'gpu[001-016]'  only these nodes
    nodetune guard resume -b -i prod         connect as the inventory specifies

    Only drains that the guard recorded on the node, with the same reason and time, are considered. All others stay.
    The policy installed on a node applies, as before a job; --profile and --site apply only to nodes without a policy.
    Exit code: 0 all resumed, 1 some fail their checks, 2 usage, 3 not reached or unknown.
    """
    settings.announce()
    found = []
    for fate in resume.run(request, Terminal()):
        found.append(fate)
        if output_format == "text":
            guard.print_fate(sys.stdout, fate, proposed_options.judged(request.selection))
    if output_format == "json":
        click.echo(document.resume(found, request.dry_run), nl=False)
    elif not found:
        click.echo("no node is drained by the guard")
    elif request.dry_run:
        guard.print_resumable(sys.stdout, found)
    return max((fate.code for fate in found), default=OK)

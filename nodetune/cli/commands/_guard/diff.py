"""`nodetune guard diff`: what an upgrade would gate."""

import sys

import click

from nodetune.cli import options as cli_options
from nodetune.cli import proposed_options, requests, verbosity
from nodetune.cli.commands._guard import _settings
from nodetune.cli.terminal import Terminal
from nodetune.foundation.exit_codes import FINDINGS, OK
from nodetune.guard.deploy import document, install
from nodetune.guard.deploy.request import GuardDiffRequest
from nodetune.report.text import guard


@requests.command("diff", GuardDiffRequest)
@cli_options.hosts
@cli_options.judging
@_settings.policy
@cli_options.printed_format
@verbosity.progress_option
def command(request: GuardDiffRequest, output_format: str) -> int:
    """Compare the new policy with the installed ones.

    Shows which checks an install would add to the policy, and which hosts would fail them now.
    Exit code: 0 no change and no failing host, 1 changes or failing hosts, 2 usage, 3 hosts not reached.
    """
    prepared = install.prepare(request, Terminal())
    if output_format == "json":
        click.echo(document.diff(prepared.nodes, prepared.differences, prepared.lost), nl=False)
    else:
        guard.print_diff(sys.stdout, prepared, proposed_options.text(request.connection))
    return max(prepared.code, FINDINGS if prepared.differs else OK)

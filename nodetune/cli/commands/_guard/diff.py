"""`nodetune guard diff`: what an upgrade would gate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

import click

from nodetune.cli import options as cli_options
from nodetune.cli import verbosity
from nodetune.cli.commands._guard import _settings, _work
from nodetune.cli.commands._guard._work import Work
from nodetune.foundation.exit_codes import FINDINGS, OK
from nodetune.guard.deploy import document as guard_document
from nodetune.guard.deploy.policy_diff import PolicyDiff
from nodetune.hosts import nodeset
from nodetune.report.text import guard
from nodetune.report.text.lines import Lines, console


@click.command("diff")
@cli_options.hosts
@cli_options.judging
@_settings.policy
@cli_options.printed_format
@verbosity.progress_option
def command(output_format: str, **options: Any) -> int:
    """Compare the new policy with the installed ones.

    Shows which checks an install would add to the policy, and which hosts would fail them now.
    Exit code: 0 no change and no failing host, 1 changes or failing hosts, 2 usage, 3 hosts not reached.
    """
    given = _settings.given(options)
    work = _work.prepare(options, judge=True)
    made = _work.policies(work, given)
    found = _work.differences(work.nodes, made)
    if output_format == "json":
        click.echo(guard_document.diff(work.nodes, found, work.lost), nl=False)
    else:
        _print(work, found, sys.stdout)
    return max(work.code, FINDINGS if _differs(work, found) else OK)


def _differs(work: Work, found: Mapping[str, PolicyDiff]) -> bool:
    return any(found.values()) or any(node.failing() for node in work.nodes)


def _print(work: Work, found: Mapping[str, PolicyDiff], stream: TextIO) -> None:
    guard.print_not_reached(stream, work.lost, work.asked)
    bare = [node.name for node in work.nodes if not node.policy]
    if bare:
        Lines(console(stream)).line(("no guard on ", "cyan"), (nodeset.fold(bare), "bold"))
    guard.print_differences(stream, found)
    guard.print_failing(stream, work.nodes)
    if work.nodes and not _differs(work, found):
        Lines(console(stream)).line("an install would change no gating check")

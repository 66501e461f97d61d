"""`nodetune slurm diff`: what an upgrade would gate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

import click

from nodetune import nodeset
from nodetune.commands import _options
from nodetune.commands._slurm import _settings, _work
from nodetune.commands._slurm._work import Work
from nodetune.outcome import FINDINGS, OK
from nodetune.report import slurm_data, slurm_text
from nodetune.report.text import Lines, console
from nodetune.slurm import nodes
from nodetune.slurm.difference import Difference


@click.command("diff")
@_options.hosts
@_options.judging
@_settings.policy
@_options.output_format
def command(output_format: str, **options: Any) -> int:
    """Show what an install would newly gate, against the policies that are installed, and which hosts would fail now.

    Exit code: 0 nothing would change and no host fails, 1 something would, 2 usage, 3 hosts not reached.
    """
    given = _settings.given(options)
    work = _work.prepare(options, judge=True)
    made = nodes.policies(work.nodes, work.choice, given)
    found = _work.differences(work.nodes, made)
    if output_format == "json":
        click.echo(slurm_data.diff(work.nodes, found, work.lost), nl=False)
    else:
        _print(work, found, sys.stdout)
    return max(work.code, FINDINGS if _differs(work, found) else OK)


def _differs(work: Work, found: Mapping[str, Difference]) -> bool:
    return any(found.values()) or any(node.failing() for node in work.nodes)


def _print(work: Work, found: Mapping[str, Difference], stream: TextIO) -> None:
    slurm_text.print_not_reached(stream, work.lost)
    bare = [node.name for node in work.nodes if not node.policy]
    if bare:
        Lines(console(stream)).line(("installed ", "cyan"), f"nothing on {nodeset.fold(bare)}")
    slurm_text.print_differences(stream, found)
    slurm_text.print_failing(stream, work.nodes)
    if not _differs(work, found):
        Lines(console(stream)).line("an install would change nothing that gates")

"""How the command line shows what a stage does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nodetune.cli import verbosity
from nodetune.foundation import paths

if TYPE_CHECKING:
    from nodetune.cli.progress import Progress


class Terminal:
    """Shows on standard error what a stage does (nodetune.foundation.stage_output.Show)."""

    def phase(self, name: str, hosts: int, seconds: float = 0.0, stages: int = 0, *, plays: bool = True) -> Progress:
        from nodetune.cli.progress import Progress  # one file of facts has no phase

        return Progress(name, hosts, seconds, stages, plays=plays)

    note = staticmethod(verbosity.note)
    detail = staticmethod(verbosity.detail)

    def warn(self, text: str) -> None:
        click.echo(paths.as_typed(text), err=True)

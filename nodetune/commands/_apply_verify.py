"""What `apply --verify` adds: hosts are measured around their changes, and what those brought is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nodetune import apply, gain, measuring, show
from nodetune.choice import Choice
from nodetune.commands import _options
from nodetune.commands._apply import Work
from nodetune.field import How
from nodetune.gain import Gauge
from nodetune.proof import Proof
from nodetune.report import verify_data
from nodetune.runs import Run
from nodetune.verdict.suites import Wanted


def gauge(wanted: Wanted, work: Work, run: Run) -> Gauge:
    """Measures the hosts of `work`, and keeps what it measures in the record of `run`."""
    asked = _options.as_typed(work.reach, None, Choice(), None)

    def keep(when: str, proofs: Sequence[Proof]) -> None:
        run.save(f"{when}-verify", verify_data.document(proofs, wanted, asked))

    return Gauge(wanted, work.targets, work.reach, measuring.measure, _tell, keep)


def announce(wanted: Wanted, work: Work, how: How) -> None:
    """Say how long it will take, before anybody agrees to it."""
    waves = apply.waves([each.result.host for each in work.busy], how.canary, how.batch)
    click.echo(gain.duration(wanted, len(waves)), err=True)


def _tell(host: str, text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{show.plain(f'measuring {host}: {text}', 100)}", nl=False, err=True)

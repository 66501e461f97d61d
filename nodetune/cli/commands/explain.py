"""`nodetune explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import click

from nodetune import checks
from nodetune.api.model import Check
from nodetune.audit import fleet
from nodetune.cli import completion
from nodetune.cli import options as cli_options
from nodetune.config import profile
from nodetune.config import site as site_files
from nodetune.foundation import text


@click.command("explain")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=completion.check_id)
@cli_options.judging
def command(ids: tuple[str, ...], **options: Any) -> None:
    """Explain checks, how to confirm them manually, and their fix.

    ID is the id of a check, an area, or a shell pattern of ids. With --site, also checks of your own.

    \b
    nodetune explain swap-large numa-balancing-on
    nodetune explain 'gpu-clock*'
    """
    choice = cli_options.choice(**options)
    resolved = profile.resolve(profile.named(choice.profiles), site_files.for_all(choice.site))
    compared = (each.as_check() for each in fleet.every().values())
    known = {check.id: check for check in (*checks.load_all(), *compared, *resolved.checks)}
    from nodetune.report.text import catalogue

    for number, check in enumerate(_meant(ids, known)):
        if number:
            click.echo()
        catalogue.print_check(check, check.id in resolved.gates)


def _meant(ids: Sequence[str], known: Mapping[str, Check]) -> list[Check]:
    """Return the checks that ids, areas and patterns mean, each once. Raise click.UsageError for one that means none."""
    found: dict[str, Check] = {}
    for given in ids:
        matching = {check.id: check for check in known.values() if given == check.area or fnmatchcase(check.id, given)}
        if not matching:
            near = text.near(given, known)
            hint = f"did you mean {' or '.join(near)}?" if near else "search them with: nodetune checks WORD"
            raise click.UsageError(f"no check is called {given!r}: {hint}")
        found |= matching
    return list(found.values())

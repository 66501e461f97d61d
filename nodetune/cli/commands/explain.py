"""`nodetune explain`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from nodetune import checks
from nodetune.audit import fleet
from nodetune.cli import completion
from nodetune.cli import options as cli_options
from nodetune.config import profile


@click.command("explain")
@click.argument("check_id", metavar="ID", shell_complete=completion.check_id)
@cli_options.judging
def command(check_id: str, **options: Any) -> None:
    """Explain a check, how to confirm it manually, and its fix."""
    choice = cli_options.choice(**options)
    resolved = profile.resolve(profile.named(choice.profiles), choice.site)
    compared = (each.as_check() for each in fleet.every().values())
    found = {check.id: check for check in (*checks.load_all(), *compared, *resolved.checks)}
    if check_id not in found:
        close = get_close_matches(check_id, found, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "list them with: nodetune checks"
        raise click.UsageError(f"no check is called {check_id!r}: {hint}")
    from nodetune.report.text import catalogue

    catalogue.print_check(found[check_id], check_id in resolved.gates)

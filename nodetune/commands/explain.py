"""`nodetune explain`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import click

from nodetune import checks, fleet, profile
from nodetune.commands import _complete, _options


@click.command("explain")
@click.argument("check_id", metavar="ID", shell_complete=_complete.check_id)
@_options.judging
def command(check_id: str, **options: Any) -> None:
    """Teach one check: why it matters, how to confirm it by hand, what the fix does."""
    choice = _options.choice(**options)
    resolved = profile.resolve(profile.named(choice.profiles), choice.site)
    compared = (each.as_check() for each in fleet.every().values())
    found = {check.id: check for check in (*checks.load_all(), *compared, *resolved.checks)}
    if check_id not in found:
        close = get_close_matches(check_id, found, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else "list them with: nodetune checks"
        raise click.UsageError(f"no check is called {check_id!r}: {hint}")
    from nodetune.report import catalogue

    catalogue.print_check(found[check_id], check_id in resolved.gates)

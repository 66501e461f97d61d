"""Read the site files of a command, and report what is wrong or left out of them."""

from pathlib import Path

import click

from nodetune.cli import settings, verbosity
from nodetune.config import overlay, site, site_lint
from nodetune.foundation import text
from nodetune.hosts.inventory import selection

MAX_GROUPS = 4
"""Groups that a note names."""


def read(paths: tuple[Path, ...]) -> overlay.Overlay | None:
    """Return the combined site file. Raise FileError, click.UsageError."""
    if Path("none") in paths and len(paths) > 1:
        raise click.UsageError("--site none means no site file: give it alone")
    verbosity.detail(f"site files: {', '.join(map(str, paths))}")
    found = site.read(paths)
    for problem in site_lint.unreachable(found) if found else ():
        click.echo(f"nodetune: {problem.text}", err=True)
    if found and (groups := site.groups_in(found)) and _in_no_group():
        named = ", ".join(map(text.plain, groups[:MAX_GROUPS])) + " …" * (len(groups) > MAX_GROUPS)
        told = f"what it says for groups ({named}) is left out, because hosts of no inventory are in no group"
        click.echo(f"nodetune: {text.names(map(str, paths))}: {told}: give one with -i", err=True)
    return found


def _in_no_group() -> bool:
    """Return whether the command works on hosts that no inventory lists."""
    context = click.get_current_context(silent=True)
    if context is None or "inventory" not in context.params:
        return False
    spec = context.params["inventory"]
    if context.params.get("facts_path") and settings.is_implicit(context, "inventory"):
        spec = None  # saved facts take none from settings
    return spec is None or selection.find(spec) is None

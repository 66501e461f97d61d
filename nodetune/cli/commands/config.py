"""`nodetune config`."""

import json
import os
from typing import Any

import click

from nodetune.cli import options, settings
from nodetune.cli.known_settings import KNOWN


@click.command("config")
@options.printed_format
@click.pass_context
def command(context: click.Context, output_format: str) -> None:
    """Show the settings that hold, and where they come from.

    \b
    inventory = "prod"      # nodetune.toml, or [tool.nodetune] in pyproject.toml
    site = "site.yml"       # a relative path starts at the folder of the file
    become = true

    The command line counts first, then NODETUNE_ variables (NODETUNE_INVENTORY), then the file in the current folder,
    and then ~/.config/nodetune/nodetune.toml. NODETUNE_CONFIG names one file to read instead; empty, none is read.
    """
    made = click.Command("config", params=[*KNOWN.values()]).make_context("config", [], parent=context)
    if output_format == "json":
        click.echo(json.dumps(_document(made), indent=1))
        return
    rows = [(key, each.shown(made.params[str(each.name)]), settings.origin(made, each)) for key, each in KNOWN.items()]
    width, wide = (max(len(row[column]) for row in rows) for column in (0, 1))
    for key, value, where in rows:
        click.echo(f"{key:{width}}  {value:{wide}}  {where}")
    click.echo(f"\nfiles: {', '.join(_files()) or 'none'}")


def _document(made: click.Context) -> dict[str, Any]:
    """Return the settings as data: what is not set is null, and a setting that repeats is a list."""
    values = {
        key: {"value": _value(each, made.params[str(each.name)]), "from": settings.origin(made, each)}
        for key, each in KNOWN.items()
    }
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return {"schema": "nodetune.config/1", "settings": plain, "files": list(map(str, settings.files()))}


def _value(each: settings.Setting, value: Any) -> Any:
    """Return a value for programs; one that holds a secret as people see it."""
    shown = each.shown(value)
    return shown if value and shown != settings.shown_value(value) else value


def _files() -> list[str]:
    """Return the files that count, and the user's own one also if it is missing."""
    found = settings.files()
    missing = [path for path in settings.user_file() if settings.VARIABLE not in os.environ and path not in found]
    return [*map(settings.shown, found), *(f"{settings.shown(path)} (missing)" for path in missing)]

"""The policy's settings as options, and what they turn into."""

from __future__ import annotations

import json
from typing import Any

import click

from nodetune.guard.deploy import nodes


def _setting(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs; a value that is not JSON is text."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE, such as reuse_seconds=120")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def full_path(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
    if given and not given.startswith("/"):
        raise click.BadParameter(f"{given!r} is not an absolute path (on the nodes)")
    return given


POLICY = (
    click.option(
        "--mode", type=click.Choice(["observe", "enforce"]), help="Guard mode. Default: as installed, or observe."
    ),
    click.option(
        "--act",
        type=click.Choice(["slurm", "drain"]),
        help="Who drains a failing node: Slurm, or the guard with its own reason. Default: as installed, or slurm.",
    ),
    click.option(
        "--shared",
        callback=full_path,
        metavar="DIR",
        help="Folder shared by all nodes, for the failure limit and the kill switch.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_setting,
        metavar="NAME=VALUE",
        help="Set another policy setting, such as cap_nodes_per_hour=3.",
    ),
)


def policy(function: Any) -> Any:
    """Give a command these options."""
    for option in reversed(POLICY):
        function = option(function)
    return function


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the given settings from the options and return them. Raise SettingError if one is invalid."""
    named = {name: options.pop(name) for name in ("mode", "act", "shared")}
    found = {**options.pop("settings"), **{name: value for name, value in named.items() if value is not None}}
    nodes.check_settings(found)
    return found

"""The policy's settings as options."""

import json
from typing import Any

import click

from nodetune.cli.requests import of, stack
from nodetune.guard.deploy.request import PolicySettings


def _setting(_context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs; a value that is not JSON is text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE, such as reuse_seconds=120")
        try:
            settings[name] = json.loads(text)
        except ValueError:
            settings[name] = text
    return settings


def full_path(_context: click.Context, _parameter: click.Parameter, path: str | None) -> str | None:
    if path and not path.startswith("/"):
        raise click.BadParameter(f"{path!r} is not an absolute path (on the nodes)")
    return path


policy = stack(
    click.option("--mode", **of(PolicySettings, "mode"), help="Guard mode. Default: as installed, or observe."),
    click.option(
        "--act",
        **of(PolicySettings, "act"),
        help="Drain a failing node by Slurm, or by the guard with its own reason. Default: as installed, or slurm.",
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

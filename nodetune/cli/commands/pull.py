"""`nodetune pull`: nodes that collect their own facts, for sites that allow no login to them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import click

from nodetune.audit.request import SelectionRequest
from nodetune.cli import Group, requests
from nodetune.cli import options as cli_options
from nodetune.foundation import file_io
from nodetune.remote.pull import collector

SCHEMA = "nodetune.pull-bundle/1"


@click.group("pull", cls=Group)
def command() -> None:
    """Let nodes collect their own facts, without logins."""


@command.command("bundle", cls=requests.kind_of(SelectionRequest))
@click.option(
    "--dir",
    "folder",
    required=True,
    metavar="DIR",
    help="Folder on the nodes for the fact files: DIR/HOSTNAME.json.",
)
@click.option(
    "--every",
    callback=cli_options.span,
    default="30m",
    show_default=True,
    metavar="TIME",
    help="Maximum time between two collections on a node (30m, 2h, 1d). The minimum is half of it.",
)
@click.option("--user", default="", help="User that writes the files, if the file server denies root. Default: root.")
@click.option(
    "--python",
    default="/usr/bin/python3",
    show_default=True,
    metavar="PATH",
    help="Path of Python 3.6 or newer on the nodes.",
)
@cli_options.judging
@cli_options.printed_format
@click.option(
    "-o",
    "--output",
    **cli_options.FOLDER,
    required=True,
    help="Folder to write.",
)
def bundle(
    request: SelectionRequest,
    folder: str,
    every: int,
    user: str,
    python: str,
    output_format: str,
    output: Path,
) -> int:
    """Write a folder with the collector and its installer.

    \b
    nodetune pull bundle --dir /shared/nodetune/facts -o nodetune-pull
    DESTDIR=/images/gpu nodetune-pull/install       into a node image; on a node, run it as root without DESTDIR
    nodetune audit --facts /shared/nodetune/facts -i prod
    """
    settings = collector.Settings(folder, every, user, python)
    made = collector.folder(request.selection.facts(), settings)
    _new(output, made)
    for name, (content, mode) in made.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file_io.write(path, content.decode())
        path.chmod(int(mode, 8))
    files = [_about(output, name, *made[name]) for name in made]
    if output_format == "json":
        told = {"schema": SCHEMA, "dir": folder, "every": every, "user": user, "python": python, "files": files}
        click.echo(json.dumps(told, indent=1))
        return 0
    for each in files:
        goes = f"{each['destination']} on nodes" if each["destination"] else "run it as root"
        click.echo(f"{each['path']}  {each['mode']}  {goes}")
    click.echo(f"on a node: {output}/install   into an image: DESTDIR=/path/of/image {output}/install")
    return 0


def _new(output: Path, made: dict[str, Any]) -> None:
    """Refuse a folder with foreign files. Raise collector.PullError."""
    there = {path.name for path in output.iterdir()} if output.exists() else set()
    strange = sorted(there - {name.partition("/")[0] for name in made})
    if strange:
        raise collector.PullError(f"{output} contains other files ({strange[0]}): give a new folder")


def _about(output: Path, name: str, content: bytes, mode: str) -> dict[str, str]:
    destination = name.removeprefix("files") if name.startswith("files/") else ""
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(output / name), "destination": destination, "mode": mode, "sha256": digest}

"""`nodetune pull`: nodes that collect their own facts, for sites that allow no login to them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options, _run
from nodetune.pull import program

SCHEMA = "nodetune.pull-bundle/1"


@click.group("pull")
def command() -> None:
    """Have nodes collect their own facts by a timer: no login to them is needed."""


@command.command("bundle")
@click.option(
    "--dir",
    "folder",
    required=True,
    metavar="DIR",
    help="Where each node leaves its facts, as a path on the node: DIR/HOSTNAME.json.",
)
@click.option(
    "--every",
    callback=_options.span,
    default="30m",
    show_default=True,
    metavar="TIME",
    help="A node's facts are renewed at least so often, between half of it and the whole (30m, 2h, 1d).",
)
@click.option(
    "--user", default="", help="Who writes on the node, where a file server does not let root. Without it: root."
)
@click.option(
    "--python", default="/usr/bin/python3", show_default=True, metavar="PATH", help="Python 3.6 or newer on the node."
)
@_options.judging
@_options.output_format
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the folder there.",
)
def bundle(
    folder: str,
    every: int,
    user: str,
    python: str,
    output_format: str,
    output: Path,
    **options: Any,
) -> int:
    """Write what a node needs: a script, a service, a timer, and how to install them. No host is touched.

    \b
    nodetune pull bundle --dir /shared/nodetune/facts -o nodetune-pull
    DESTDIR=/images/gpu nodetune-pull/install       into the image of a node; or on a node, as root, without DESTDIR
    nodetune audit --facts /shared/nodetune/facts -i prod
    """
    settings = program.Settings(folder, every, user, python)
    made = program.folder(_options.choice(**options).facts(), settings)
    _new(output, made)
    for name, (content, mode) in made.items():
        _write(output / name, content, int(mode, 8))
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
    """Nothing of somebody else's is mixed with ours."""
    there = {path.name for path in output.iterdir()} if output.exists() else set()
    strange = sorted(there - {name.partition("/")[0] for name in made})
    if strange:
        raise program.BadPull(f"{output} holds other things ({strange[0]}): name a new folder")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _run.output_stream(path) as stream:
        stream.write(content.decode())
    path.chmod(mode)


def _about(output: Path, name: str, content: bytes, mode: str) -> dict[str, str]:
    destination = name.removeprefix("files") if name.startswith("files/") else ""
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(output / name), "destination": destination, "mode": mode, "sha256": digest}

"""`nodetune init`."""

import shlex
from pathlib import Path

import click

from nodetune.config import samples


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[DIR]")
def command(folder: Path) -> None:
    """Write an inventory and site files to start from.

    \b
    inventories/prod/     the hosts, for -i prod
    site.yml              what your site judges otherwise, for --site
    provision.yml         repositories and parts of new hosts, for nodetune provision

    An existing file stays as it is.
    """
    for name, written in samples.write(folder):
        click.echo(f"{'written' if written else 'is there'}  {folder / name}")
    into = "" if folder == Path() else f"cd {shlex.quote(str(folder))}; "
    click.echo(f"\nnext: name your hosts in {folder / samples.INVENTORY}, then: {into}nodetune audit -i prod")

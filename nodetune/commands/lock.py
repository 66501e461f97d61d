"""`nodetune lock`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options


@click.command("lock")
@_options.hosts
@_options.provision_site
@click.option("--driver", metavar="VERSION", help="Lock this driver (580.159.04) instead of the branch's newest.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The lock file to write; systems that it has and that were not asked now stay.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 4 where the lock file would change.")
def command(output: Path | None, check: bool, driver: str | None, site: Path, **options: Any) -> int:
    """Write down which versions hosts would get from the site's repositories.

    \b
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock     review it, and keep it in git
    nodetune lock -i gpu01,gpu17 -b --site site.yml                one host of each system; on standard output
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock --check    is there anything newer?

    The hosts' own package managers resolve it, with the repositories in a folder of their own: nothing on a host changes.
    Ask one host of each kind (system, and with or without NVSwitches).
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 a host named no versions, or (--check) the file would change.
    """
    from nodetune.commands import _provision

    if check and output is None:
        raise click.UsageError("--check compares with a lock file: name it with -o")
    return _provision.lock(_options.reach(options), site, driver, output, check, sys.stdout)

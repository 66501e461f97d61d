"""`nodetune lock`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from nodetune.cli import change_options, verbosity
from nodetune.cli import options as cli_options


@click.command("lock")
@cli_options.hosts
@change_options.provision_site
@click.option(
    "--driver", metavar="VERSION", help="Lock this driver version (580.159.04) instead of the newest one of the branch."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Lock file to write. Entries for other systems are kept.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 4 if the lock file would change.")
@verbosity.progress_option
def command(output: Path | None, check: bool, driver: str | None, site: tuple[Path, ...], **options: Any) -> int:
    """Lock the package versions that hosts would install.

    \b
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock     review it and commit it
    nodetune lock -i gpu01,gpu17 -b --site site.yml                one host of each system; to standard output
    nodetune lock -i gpu01 -b --site site.yml -o versions.lock --check    look for newer versions

    The package managers of the hosts resolve the versions from the site's repositories, in a separate folder. Changes
    nothing on any host. Name one host of each kind: operating system, with and without NVSwitches.
    Exit code: 0 done, 2 usage, 3 hosts not reached, 4 a host returned no versions, or (--check) the file would change.
    """
    from nodetune.cli.commands import _provision

    if check and output is None:
        raise click.UsageError("--check needs a lock file: name it with -o")
    return _provision.lock(cli_options.reach(options), site, driver, output, check, sys.stdout)

"""Options that say by which profiles and site files hosts are judged, and which checks run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from nodetune.audit.selection import Selection
from nodetune.cli import settings, verbosity
from nodetune.cli.host_options import complete, stack
from nodetune.config import profile

judging = stack(
    click.option(
        "-p",
        "--profile",
        "profiles",
        cls=settings.Setting,
        multiple=True,
        metavar="NAME",
        shell_complete=complete("profiles"),
        help="Profile to use instead of training. May be repeated. Matching profiles (vm, grace …) are added.",
    ),
    click.option(
        "--site",
        cls=settings.Setting,
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Site file with overrides, checks and waivers. May be repeated: later files win.",
    ),
)

selection = stack(
    judging,
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="ID",
        shell_complete=complete("selected"),
        help="Run only these checks or areas (shell patterns).",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="ID",
        shell_complete=complete("selected"),
        help="Skip these checks or areas.",
    ),
)


@dataclass(frozen=True)
class SelectionOptions:
    """The options as typed."""

    profiles: tuple[str, ...] = ()
    site: tuple[Path, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def built(self) -> Selection:
        """Return what they say. Raise yaml_lines.FileError."""
        profile.named(self.profiles)
        return Selection(self.profiles, _site(self.site), self.select, self.ignore, files=self.site)


def _site(paths: tuple[Path, ...]) -> profile.Overlay | None:
    if not paths:
        return None
    from nodetune.config import site, site_lint  # most runs have none

    verbosity.detail(f"site files: {', '.join(map(str, paths))}")
    found = site.read(paths)
    for problem in site_lint.unreachable(found) if found else ():
        click.echo(f"nodetune: {problem.text}", err=True)
    return found

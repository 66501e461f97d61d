"""The help of every command, for docs/cli.md and for the manual page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from nodetune import __version__
from nodetune.cli.main import group

PAGE = r"""
.TH NODETUNE 1 "" "nodetune {version}" "User Commands"
.SH NAME
nodetune \- {about}
{commands}.SH FILES
.TP
nodetune.toml, [tool.nodetune] in pyproject.toml, ~/.config/nodetune/nodetune.toml
Settings: options that hold where the command line does not name them.
.TP
~/.local/state/nodetune/runs
Records of the runs that changed hosts.
"""


def helps(command: click.Command, path: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield each command with its help, this one and all below it."""
    context = click.Context(command, info_name=path, help_option_names=["-h", "--help"], terminal_width=width)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from helps(found, f"{path} {name}", width)


def page() -> str:
    """Return the manual page: the help of each command as a terminal shows it.

    click-man writes one page for each command, only of commands that are imported, and joins the lines of examples.
    """
    about = group.get_short_help_str(200).rstrip(".")
    sections = (f".SH {path.upper()}\n.nf\n{_roff(text)}\n.fi\n" for path, text in helps(group, "nodetune", 78))
    return PAGE.lstrip().format(version=__version__.partition(".dev")[0], about=about, commands="".join(sections))


def _roff(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return re.sub(r"^\.", r"\\&.", escaped, flags=re.MULTILINE)

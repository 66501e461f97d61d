"""The options that a user typed, for the commands that reports propose."""

import shlex
from dataclasses import replace
from pathlib import Path

import click

from nodetune.audit.selection import Selection
from nodetune.cli import settings
from nodetune.foundation import paths
from nodetune.hosts.connection_options import ConnectionOptions


def text(connection: ConnectionOptions, facts_path: Path | None = None, selection: Selection | None = None) -> str:
    """Return the options that select hosts and profile, and the way to the hosts, quoted for a shell."""
    found = connection.words
    if facts_path:
        bundled = facts_path.parent == paths.bundled("facts/recorded")
        saved = ["--facts", facts_path.stem if bundled else str(facts_path)]
        found = [*saved, *replace(connection, transport="auto").words]
    return shlex.join([*found, *(selection.words if selection else ())])


def judged(selection: Selection) -> str:
    """Return the options that select profile and site file, quoted for a shell."""
    return shlex.join(selection.words)


def selected(selection: Selection) -> str:
    """Return the options that select checks, quoted for a shell."""
    given = (("-s", selection.select), ("--ignore", selection.ignore))
    return shlex.join(word for option, names in given for name in names for word in (option, name))


def validate(connection: ConnectionOptions, selection: Selection) -> str:
    """Return the command that names the faults of the site files, also those about hosts of the inventory."""
    inventory = ["-i", connection.inventory] if connection.inventory else []
    return shlex.join(["nodetune", "profile", "validate", *map(str, selection.files), *inventory])


def runs_folder() -> str:
    """Return --runs if it is on the command line, quoted for a shell: a setting also applies to the next command."""
    context = click.get_current_context(silent=True)
    given = context.params.get("runs_folder") if context else None
    if context is None or given is None or settings.is_implicit(context, "runs_folder"):
        return ""
    return shlex.join(["--runs", str(given)])

"""The options that a user typed, for the commands that reports propose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import click

from nodetune.cli import settings
from nodetune.foundation import paths
from nodetune.hosts.target import ConnectionOptions


def text(
    reach: ConnectionOptions, facts_path: Path | None = None, profiles: Iterable[str] = (), site: Iterable[Path] = ()
) -> str:
    """Return `words` as one text, quoted for a shell."""
    return shlex.join(words(reach, facts_path, profiles, site))


def words(
    reach: ConnectionOptions, facts_path: Path | None = None, profiles: Iterable[str] = (), site: Iterable[Path] = ()
) -> list[str]:
    """Return the options that select hosts and profile, and the way to the hosts."""
    found = ["--transport", reach.transport] if reach.transport != "auto" and not facts_path else []
    if facts_path:
        bundled = facts_path.parent == paths.bundled("facts/recorded")
        found += ["--facts", facts_path.stem if bundled else str(facts_path)]
    found += ["-i", reach.inventory] if reach.inventory else []
    found += ["-l", reach.limit] if reach.limit else []
    found += ["--failed-of", reach.failed_of] if reach.failed_of else []
    found += ["-u", reach.user] if reach.user else []
    found += ["--private-key", reach.private_key] if reach.private_key else []
    found += ["--port", str(reach.port)] if reach.port else []
    found += reach.vault.typed
    found += ["-b" if reach.become_password is None else "-K"] if reach.become else []
    return [*found, *_judged(profiles, site)]


def judged(profiles: Iterable[str] = (), site: Iterable[Path] = ()) -> str:
    """Return the options that select profile and site file, quoted for a shell."""
    return shlex.join(_judged(profiles, site))


def selected(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> str:
    """Return the options that select checks, quoted for a shell."""
    given = (("-s", select), ("--ignore", ignore))
    return shlex.join(word for option, names in given for name in names for word in (option, name))


def runs_folder() -> str:
    """Return --runs if the command line holds it, quoted for a shell: a setting holds for the next command, too."""
    context = click.get_current_context(silent=True)
    given = context.params.get("runs_folder") if context else None
    if context is None or given is None or settings.is_implicit(context, "runs_folder"):
        return ""
    return shlex.join(["--runs", str(given)])


def _judged(profiles: Iterable[str], site: Iterable[Path]) -> list[str]:
    chosen = [word for name in profiles for word in ("-p", name)]
    return [*chosen, *(word for file in site for word in ("--site", str(file)))]

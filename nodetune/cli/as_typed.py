"""The options that a user typed, for the commands that reports propose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from nodetune.foundation import paths
from nodetune.hosts.target import ConnectionOptions


def text(
    reach: ConnectionOptions, facts_path: Path | None = None, profiles: Iterable[str] = (), site: Path | None = None
) -> str:
    """Return `words` as one text, quoted for a shell."""
    return shlex.join(words(reach, facts_path, profiles, site))


def words(
    reach: ConnectionOptions, facts_path: Path | None = None, profiles: Iterable[str] = (), site: Path | None = None
) -> list[str]:
    """Return the options that select hosts and profile."""
    found = ["--transport", "slurm"] if reach.transport == "slurm" else []
    if facts_path:
        bundled = facts_path.parent == paths.bundled("facts/recorded")
        found += ["--facts", facts_path.stem if bundled else str(facts_path)]
    found += ["-i", reach.inventory] if reach.inventory else []
    found += ["-l", reach.limit] if reach.limit else []
    found += ["-b"] if reach.become else []
    for name in profiles:
        found += ["-p", name]
    return [*found, "--site", str(site)] if site else found

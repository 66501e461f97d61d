"""The version of this checkout: each commit has a higher one. Read by pyproject.toml, and by what makes packages."""

# ruff: noqa: INP001  (not part of a package)

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "nodetune/__init__.py"
SHALLOW = "+shallow"
"""The end of the version of a shallow clone, which lacks commits: its number would be too low."""

LINE = re.compile(r'(?m)^__version__ = "(.+)"$')


def of(root: Path = ROOT) -> str:
    """Return the version of the sources, with the number of commits for the last 0 of a development version.

    Without git, or its repository, it stays 0: an sdist and a release have their number in the sources.
    """
    found = LINE.search((root / SOURCE).read_text("utf-8"))
    base = found[1] if found else ""
    return base[:-1] + _commits(root) if base.endswith(".dev0") else base


def _commits(root: Path) -> str:
    within, _, shallow = _git(root, "rev-parse", "--show-prefix", "--is-shallow-repository").rpartition("\n")
    if shallow == "true":
        return "0" + SHALLOW
    return (not within and shallow and _git(root, "rev-list", "--count", "HEAD")) or "0"


def _git(root: Path, *words: str) -> str:
    """Return what git says of this repository, and of no other that the environment names; nothing if it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    asked = ["git", "-c", "safe.directory=*", "-C", str(root), *words]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, env=env).stdout.strip(" \n")
    except (OSError, subprocess.CalledProcessError):
        return ""


def stamped(text: str, version: str) -> str:
    """Return the source with this version in it."""
    return LINE.sub(f'__version__ = "{version}"', text)


def semantic(version: str) -> str:
    """Return it as Helm and Ansible write versions: they compare a number as such if it is a field of its own."""
    return version.replace(".dev", "-dev.")

"""Where playbooks/, templates/ and inventories/ are: next to the package in a source tree, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def shared(name: str) -> Path:
    """Return the folder of that name. Raise FileNotFoundError if this installation lacks it."""
    for folder in (PACKAGE / "_shared" / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"this installation of nodetune lacks the folder {name}: reinstall it")


def bundled(name: str) -> Path:
    """Return a file or folder inside the package (profiles, machines, schemas)."""
    return PACKAGE / name

"""Where playbooks/, templates/ and inventories/ are: beside the package in a source tree, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def shared(name: str) -> Path:
    """The folder of that name. Raises FileNotFoundError when this installation lacks it."""
    for folder in (PACKAGE / "_shared" / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"this installation of nodetune has no folder {name}: install it again")


def bundled(name: str) -> Path:
    """A file or folder inside the package (profiles, machines, schemas)."""
    return PACKAGE / name

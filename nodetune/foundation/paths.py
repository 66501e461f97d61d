"""Where playbooks/, templates/ and inventories/ are: next to the package in a source tree, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

from nodetune.foundation import UserError

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


def source_of(module: str, package: str) -> str:
    """Return the source of an installed module. Raise UserError."""
    import importlib.util  # here: few commands send one

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UserError(f"{module} is not installed here: install {package}")
    return Path(spec.origin).read_text("utf-8")

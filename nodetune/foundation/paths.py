"""Where playbooks/, templates/ and inventories/ are: next to the package in a source tree, inside it in a wheel. Where nodetune is."""

import os
import re
import sys
from functools import cache
from pathlib import Path

from nodetune.foundation import UserError

PACKAGE = Path(__file__).parents[1]
NAME = "nodetune"
START = "import sys; sys.path = [sys.argv.pop(1), *filter(None, sys.path)]; import {0}; del sys.path[0]; from {1} import main; main()"
"""A program for `python -c` that imports nothing of the current folder, as `python -m` would. Python 3.10 has no -P."""

LACKING = "is not installed here (the zipapp has neither Ansible nor paramiko)"


def shared(name: str) -> Path:
    """Return the folder of that name. Raise FileNotFoundError if this installation lacks it."""
    for folder in (PACKAGE / "_shared" / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"this installation of nodetune lacks the folder {name}: reinstall it")


def bundled(name: str) -> Path:
    """Return a file or folder inside the package (profiles, machines, schemas)."""
    return PACKAGE / name


def start(module: str = f"{NAME}.cli.main") -> list[str]:
    """Return the command that runs `main` of a module in this Python; nodetune is this copy of it."""
    return [sys.executable, "-c", START.format(module.partition(".")[0], module), str(PACKAGE.parent)]


def source_of(module: str, package: str) -> str:
    """Return the source of an installed module. Raise UserError."""
    import importlib.util  # here: few commands send one

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise UserError(f"{module} is not installed here: install {package}")
    return Path(spec.origin).read_text("utf-8")


def as_typed(text: str) -> str:
    """Return a text with its commands of nodetune as this user can type them; unchanged if the shell finds nodetune."""
    own, commands = _own()
    if not own:
        return text
    import shlex  # here, and below: most commands propose none

    word = shlex.quote(os.path.abspath(own) if text.startswith("cd ") else own)  # noqa: PTH100  (links stay)
    return commands.sub(lambda _: word, text)


@cache
def _own() -> tuple[str, re.Pattern[str]]:
    """Return the path by which this program runs, empty if its name is enough, and what matches the name before a command."""
    import shutil

    own, found = sys.argv[0], shutil.which(NAME)
    named = Path(own).name.removesuffix(".pyz") != NAME or (found and Path(found).resolve() == Path(own).resolve())
    names = "|".join(path.stem for path in (PACKAGE / "cli" / "commands").glob("[a-z]*.py"))
    return ("" if named else own), re.compile(rf"(?<![\w./-]){NAME}(?= (?:{names}|--help)\b)")

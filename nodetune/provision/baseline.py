"""The site's baseline: whether it can be read, or written, before hours of work lead up to it."""

from __future__ import annotations

from pathlib import Path

from nodetune import whole
from nodetune.located import BadFile
from nodetune.verdict import baseline
from nodetune.verdict.baseline import BadBaseline


def check(path: Path | None) -> None:
    """Raises BadFile."""
    if path is None:
        return
    try:
        if path.exists():
            baseline.read(path)
        else:
            whole.check(_first(path))
    except (BadBaseline, OSError) as problem:
        raise BadFile(f"{told(problem)} (the site file's baseline: {path})") from None


def _first(path: Path) -> Path:
    """What would be made first: folders that are missing are made as well."""
    while not path.parent.exists() and path.parent != path:
        path = path.parent
    return path


def told(problem: BadBaseline | OSError) -> str:
    """One line: which file, and what is wrong with it."""
    if isinstance(problem, OSError):
        what = (problem.strerror or str(problem)).lower()
        return f"{problem.filename}: {what}" if problem.filename else what
    return str(problem)

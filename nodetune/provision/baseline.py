"""The site's baseline: whether it can be read, or written, before hours of work lead up to it."""

from pathlib import Path

from nodetune.foundation import file_io
from nodetune.foundation.json_document import DocumentError
from nodetune.foundation.yaml_lines import FileError
from nodetune.verify import baseline


def check(path: Path | None) -> None:
    """Check that the baseline can be read or written. Raise FileError."""
    if path is None:
        return
    try:
        if path.exists():
            baseline.read(path)
        else:
            file_io.check(_first(path))
    except (DocumentError, OSError) as problem:
        raise FileError(f"{told(problem)} (the site file's baseline: {path})") from None


def _first(path: Path) -> Path:
    """Return the topmost folder that would be created."""
    while not path.parent.exists() and path.parent != path:
        path = path.parent
    return path


def told(problem: DocumentError | OSError) -> str:
    """Describe on one line which file is wrong, and what is wrong with it."""
    if isinstance(problem, OSError):
        what = (problem.strerror or str(problem)).lower()
        return f"{problem.filename}: {what}" if problem.filename else what
    return str(problem)

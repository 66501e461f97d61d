"""Common parts of all published JSON documents: the first keys, the writer, and the reader."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodetune import __version__
from nodetune.foundation import UserError, file_io


class DocumentError(UserError):
    """A file is not a document of its kind; the text is one line: file, fault, and what to do."""


def head(schema: str) -> dict[str, Any]:
    """Return the first keys of a document."""
    return {"schema": schema, "nodetune": __version__, "time": int(time.time())}


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"


def read(
    path: Path, schema: str, largest: int, remedy: str, change: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """Read a document of this schema. Raise DocumentError with the remedy, or OSError.

    `change`: what each object becomes while the document is parsed.
    """
    try:
        found = json.loads(file_io.read(path, largest), object_hook=change)
    except (ValueError, RecursionError):
        raise DocumentError(f"{path}: not JSON: {remedy}") from None
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise DocumentError(f"{path}: not a {schema} document: {remedy}")
    return found


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `new` into `old`, mapping by mapping; None removes an entry (a JSON merge patch, RFC 7396)."""
    merged = dict(old)
    for key, value in new.items():
        if isinstance(value, Mapping):
            under = merged.get(key)
            merged[key] = merge(under if isinstance(under, Mapping) else {}, value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged

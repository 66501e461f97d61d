"""Common parts of all published JSON documents: the first keys, and the writer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from nodetune import __version__


def head(schema: str) -> dict[str, Any]:
    """Return the first keys of a document."""
    return {"schema": schema, "nodetune": __version__, "time": int(time.time())}


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"


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

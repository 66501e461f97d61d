"""What every published JSON document has: its first keys, and how it is written."""

from __future__ import annotations

import json
import time
from typing import Any

from nodetune import __version__


def head(schema: str) -> dict[str, Any]:
    """Return the first keys of a document."""
    return {"schema": schema, "nodetune": __version__, "time": int(time.time())}


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"

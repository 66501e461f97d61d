"""The last audit, verify and guard status in a few numbers, for `nodetune` without a command: one small file each."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nodetune.foundation import file_io, text
from nodetune.remediation.runs import record

SCHEMA = "nodetune.latest/1"
LARGEST = 1 << 16
MAX_NAME_CHARACTERS = 2000


def keep(command: str, asked: str, summary: Mapping[str, Any]) -> None:
    """Record the result of a command in place of the previous one, if possible. `asked`: its options."""
    told = {
        "schema": SCHEMA,
        "command": command,
        "time": int(time.time()),
        "asked": asked[:MAX_NAME_CHARACTERS],
        **summary,
    }
    with suppress(OSError, RuntimeError):  # a home that is read-only, or none
        told["folder"] = str(Path.cwd())
        path = _path(command)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file_io.write(path, json.dumps(told) + "\n")


def read(command: str) -> dict[str, Any]:
    """Return what `keep` recorded last; empty if there is nothing that can be read."""
    try:
        found = text.json_object(file_io.read(_path(command), LARGEST).decode())
    except (OSError, RuntimeError, ValueError):
        return {}
    return found if found.get("schema") == SCHEMA and isinstance(found.get("time"), int) else {}


def _path(command: str) -> Path:
    return record.place() / f"latest-{command.replace(' ', '-')}.json"

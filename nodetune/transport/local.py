"""This machine: the probe runs imported, or through sudo when it should be root."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from nodetune.probe import emit


def facts(asked: Mapping[str, list[str]], seconds: float) -> Any:
    """The fact document of this machine (plain data, as a remote probe would send it)."""
    return emit.document(dict(asked), seconds)


def name() -> str:
    return socket.gethostname()

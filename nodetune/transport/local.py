"""This machine: the probe runs imported; through a process of its own when others are probed beside it, or as root."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from typing import Any

from nodetune.probe import emit
from nodetune.transport import Target, Unreachable, pipes
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.talk import Talk


def facts(asked: Mapping[str, list[str]], seconds: float) -> Any:
    """The fact document of this machine (plain data, as a remote probe would send it)."""
    return emit.document(dict(asked), seconds)


def name() -> str:
    return socket.gethostname()


def becomes_another(target: Target) -> bool:
    """Whether sudo is needed: not by whoever is that user already."""
    try:
        return target.become and pwd.getpwnam(target.become_user).pw_uid != os.geteuid()
    except KeyError:
        return target.become


def run(talk: Talk, life: Lifeline) -> int | None:
    """Pipe the script to a Python here. Returns its exit status; raises Unreachable."""
    try:
        return pipes.converse(["/bin/sh", "-c", talk.command], talk, life)
    except OSError as problem:
        raise Unreachable("no python", f"/bin/sh cannot be run: {problem.strerror}") from None

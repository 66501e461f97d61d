"""This machine: the probe runs in this process, or in a separate one as root or while other hosts are probed."""

import os
import pwd
from collections.abc import Mapping
from typing import Any

from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login import pipes
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import Session


def facts(asked: Mapping[str, list[str]], seconds: float, most: float = 0.0) -> Any:
    """Return the fact document of this machine as a remote probe would send it."""
    from nodetune.probe import main  # other hosts are sent the probe

    return main.document(dict(asked), seconds, most)


def becomes_another(target: Target) -> bool:
    """Return whether sudo is needed: not if we already are that user."""
    try:
        return target.become and pwd.getpwnam(target.become_user).pw_uid != os.geteuid()
    except KeyError:
        return target.become


def run(session: Session, deadline: Deadline) -> int | None:
    """Pipe the script to a Python on this machine. Return its exit status. Raise UnreachableError."""
    try:
        return pipes.converse(["/bin/sh", "-c", session.command], session, deadline)
    except OSError as problem:
        raise UnreachableError("no python", f"/bin/sh cannot be run: {problem.strerror}") from None

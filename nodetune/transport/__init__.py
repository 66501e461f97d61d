"""Ways to reach a host: one round trip each. The only place that opens a connection.

A transport is a module with `run(target, script, options) -> bytes`: it pipes `script` to `python3 -I -S -` on the
target and returns what that printed, at most `options.most_bytes` of it. It raises Unreachable for anything that keeps
it from doing so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STATES = {
    "unresolved": "no such host name",
    "unreachable": "no route, or no answer",
    "refused": "nothing listens on the SSH port",
    "unknown host key": "the host key is not known here",
    "host key changed": "the host key is not the known one",
    "authentication failed": "no key or password was accepted",
    "become failed": "sudo refused",
    "no python": "no usable python3",
    "deadline": "no complete answer in time",
    "dropped": "the connection broke",
    "bad answer": "the answer is not one of the probe",
    "too much output": "more output than a probe ever gives",
    "unsupported": "this transport cannot do what the host needs",
}
"""Everything that can go wrong on the way to a host, in the report's words."""


class Unreachable(Exception):
    """Why a host could not be probed: `state` is one of STATES, `message` says what and what to do."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.message = message


@dataclass(frozen=True)
class Target:
    """One host to reach. `name` is what reports call it; the rest are Ansible's connection variables, resolved."""

    name: str
    address: str = ""
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    password: str | None = None
    connection: str = "ssh"
    ssh_args: tuple[str, ...] = ()
    python: str = "python3"
    become: bool = False
    become_user: str = "root"
    become_password: str | None = None
    variables: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """What holds for all hosts of a run. `seconds` is the deadline of one host, all of it."""

    seconds: float = 40.0
    connect_seconds: float = 10.0
    most_bytes: int = 16 << 20
    accept_new_host_keys: bool = False

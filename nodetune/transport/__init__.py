"""Ways to reach a host: one round trip each. The only place that opens a connection.

`fanout.collect` is the way in. A transport (paramiko_ssh, ssh, local) logs in, runs `talk.command` on the target, carries
what it prints into a `talk.Talk` and what that wants to say back, and returns the exit status. It raises Unreachable for
anything that keeps it from doing so. All of it happens within the host's `lifeline.Lifeline`.
"""

from __future__ import annotations

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
    "internal error": "nodetune itself failed at this host",
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
    """One host to reach. `name` is what reports call it; the rest are Ansible's connection variables, resolved.

    `key_file` and `ssh_args` are what the inventory adds to the user's own OpenSSH configuration. `groups` are the
    inventory's groups that the host is in, `all` left out.
    """

    name: str
    address: str = ""
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    password: str | None = field(default=None, repr=False)
    connection: str = "ssh"
    ssh_args: tuple[str, ...] = ()
    python: str = "python3"
    become: bool = False
    become_user: str = "root"
    become_method: str = "sudo"
    become_password: str | None = field(default=None, repr=False)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """What holds for all hosts of a run.

    `seconds` is the deadline of one host, from name look-up to the last byte; `connect_seconds` that of the TCP connection.
    """

    seconds: float = 40.0
    connect_seconds: float = 10.0
    most_bytes: int = 4 << 20
    """Of one answer. A real one has a hundredth of that."""

    most_said: int = 16 << 20
    """Of all that is said in a conversation, which may take hours."""

    accept_new_host_keys: bool = False

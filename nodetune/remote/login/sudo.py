"""The command that runs on the host: the probe's Python, directly or as another user through sudo."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nodetune.hosts.target import Target, UnreachableError

UNANSWERED = r"[Mm]issing sudo password|a password is required"
"""The message of sudo, or of Ansible for it, without a password."""

ADVICE = "use --ask-become-pass, or allow this user to use sudo without one"
REFUSED = "sudo did not accept the password"


@dataclass(frozen=True)
class Command:
    """The command to run on the host.

    With `prompt`, send the password only after the prompt was seen on standard error, and the script only after
    `ready` was seen there, so that the host cannot confuse the two.
    """

    line: str
    prompt: bytes = b""
    ready: bytes = b""


def command(target: Target, nonce: str, program: str = "-") -> Command:
    """Return the command for Python to run `program`: shell words, or standard input. Raise UnreachableError."""
    python = f"{_word(target.python)} -I -S {program}"
    if not target.become:
        return Command(python)
    if target.become_method not in ("sudo", "ansible.builtin.sudo"):
        raise UnreachableError(
            "unsupported",
            f"become method {target.become_method!r}: only sudo is supported; set ansible_become_method: sudo",
        )
    user = shlex.quote(target.become_user)
    if target.become_password is None:
        return Command(f"sudo -n -u {user} -- {python}")
    prompt, ready = f"nodetune-password-{nonce}:", f"nodetune-ready-{nonce}"
    inner = shlex.quote(f"echo {ready} >&2; exec {python}")
    return Command(f"sudo -S -p {prompt} -u {user} -- sh -c {inner}", prompt.encode(), ready.encode())


def _word(python: str) -> str:
    """Quote the interpreter for a shell: a path, `~/…`, or several words such as `/usr/bin/env python3`."""
    return " ".join(
        "~/" + shlex.quote(word[2:]) if word.startswith("~/") else shlex.quote(word) for word in shlex.split(python)
    )

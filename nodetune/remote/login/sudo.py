"""The command that runs on the host: the probe's Python, directly or as another user through sudo."""

import re
import shlex
from dataclasses import dataclass

from nodetune.hosts.target import Target, UnreachableError

REFUSED = "sudo did not accept the password"

ERRORS = {
    r"[Mm]issing sudo password|a password is required|interactive authentication is required": (
        "sudo needs a password: use --ask-become-pass, or allow this user to use sudo without one"
    ),
    r"[Ii]ncorrect sudo password|no password was provided|Sorry, try again|incorrect password attempt"
    r"|Authentication failed, try again|Authentication required but not attempted": REFUSED,
    r"not in the sudoers file|is not allowed to (?:execute|run sudo)|may not run sudo|I'm afraid I can't do that": (
        "sudo refuses this user ({0}): allow it in /etc/sudoers.d"
    ),
    r"must have a tty to run sudo|no tty present": (
        "sudo requires a terminal (requiretty): write Defaults:USER !requiretty into a file in /etc/sudoers.d"
    ),
    r"sudo: (?:command )?not found|sudo: No such file|unable to find sudo": (
        "sudo is not installed there: install it, or log in as root"
    ),
    r"waiting for privilege escalation prompt": "sudo did not answer in time",
}
"""Pattern of a message of sudo, of sudo-rs (Ubuntu 26.04), or of Ansible for it → what that means and what to do. {0} is what was found."""


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


def advice(text: str) -> str:
    """Return what an error means and what to do about it; "" if sudo did not cause it."""
    found = ((re.search(pattern, text), meaning) for pattern, meaning in ERRORS.items())
    return next((meaning.format(match[0]) for match, meaning in found if match), "")


def _word(python: str) -> str:
    """Quote the interpreter for a shell: a path, `~/…`, or several words such as `/usr/bin/env python3`."""
    return " ".join(
        "~/" + shlex.quote(word[2:]) if word.startswith("~/") else shlex.quote(word) for word in shlex.split(python)
    )

"""Turn Ansible's errors about a host into one line that says what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodetune.remote.login import sudo

MAX_READ = 20_000
LAST_READ = 1_000
"""The parts of a text that are read: its beginning and its end."""

ERRORS = {
    r"nodetune: too much output: cut off": "too much output: cut off",
    r"requires a minimum of Python[^\n\"]*": (
        "python3 on the host is too old ({0}): install a newer one, or set one with ansible_python_interpreter"
    ),
    r"python[\d.]*: (?:command )?not found|python[\d.]*: No such file|[Nn]o python interpreters? found": (
        "no usable python3 on the host ({0}): install one, or set its path with ansible_python_interpreter"
    ),
    r"IDENTIFICATION HAS CHANGED|REVOKED HOST KEY": (
        "its host key differs from the known one: someone may intercept the connection, or the host was reinstalled"
    ),
    r"Host key verification failed|host key is known for": (
        "its host key is not in known_hosts: check it and accept it manually, or use --accept-new-host-keys"
    ),
    r"No space left on device|No usable temporary directory": (
        "no temporary file can be written on the host: free some space, or mount it writable (df -h /tmp)"
    ),
    r"sshpass program": "OpenSSH accepts no password from this ansible-core: use a key, or install sshpass here",
}
"""Pattern → what that means and what to do; the first that fits, then those of sudo. {0} is what was found."""


def telling(result: Mapping[str, Any], login_command: str = "") -> str:
    """Return a failure as one line. `login_command` is the command to try if the host was not reached."""
    said = "\n".join(_texts(result))
    more = f": try `{login_command}`" if login_command else ""
    for pattern, meaning in ERRORS.items():
        found = re.search(pattern, said)
        if found:
            return meaning.format(found[0].strip()) + more
    if advice := sudo.advice(said):
        return advice + more
    message = str(result.get("msg") or "").strip() or "failed without a message"
    message = re.sub(r"^(?:Task failed: )?(?:Failed to connect to the host via ssh: )?", "", message)
    error = str(result.get("module_stderr") or result.get("stderr") or "").strip().splitlines()[-1:]
    return " ".join([message, *(f"({line})" for line in error if line not in message)]) + more


def _texts(result: Mapping[str, Any]) -> Iterator[str]:
    for name in ("msg", "module_stderr", "module_stdout", "stderr", "exception"):
        if isinstance(result.get(name), str):
            yield result[name][:MAX_READ]
            yield result[name][MAX_READ:][-LAST_READ:]

"""The OpenSSH client: one process for each host. Slower than paramiko, but it can do everything that `ssh` can.

ConnectTimeout limits the TCP connection. There is no test connection before it to see whether the port answers: recent
sshds penalise clients that connect without logging in.
"""

import os
import re
import shlex
import shutil
from collections.abc import Sequence

from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.login import host_keys, pipes
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import Session
from nodetune.remote.login.ssh_config import Settings, arguments

OWN_OPTIONS = (
    "UpdateHostKeys=no",  # many at once would all write to known_hosts
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
)

_MEANING = (
    ("host key changed", r"HOST IDENTIFICATION HAS CHANGED|host key .*changed|REVOKED HOST KEY"),
    ("unknown host key", r"host key is known for|Host key verification failed"),
    (
        "authentication failed",
        r"Permission denied|Too many authentication failures|Authentication failed|No supported authentication",
    ),
    ("unresolved", r"Could not resolve hostname|Name or service not known"),
    ("refused", r"Connection refused"),
    (
        "unreachable",
        r"No route to host|Network is unreachable|timed out|Host is down|Address not available|Cannot assign requested address",
    ),
    (
        "unsupported",
        r"Bad configuration option|Bad owner or permissions|Unable to negotiate|command-line|Unsupported option",
    ),
    (
        "dropped",
        r"Connection (closed|reset)|kex_exchange_identification|Broken pipe|not responding|Connection to .* closed|disconnect",
    ),
)
"""Error messages of the client, the most specific first."""


def run(
    target: Target, settings: Settings, session: Session, options: SessionOptions, deadline: Deadline
) -> int | None:
    """Log in, run the session, and return the command's exit status. Raise UnreachableError."""
    if shutil.which("ssh") is None:
        raise UnreachableError(
            "unsupported",
            "the OpenSSH client is not installed here: apt install openssh-client, or --transport paramiko",
        )
    command = _command(target, settings, session, options)
    deadline.stage = "logging in (ssh)"
    if target.password is None:
        status = pipes.converse(command, session, deadline)
    else:
        status = _with_password(target.password, command, session, deadline)
    if status == 255 and not session.begun:
        raise _problem(session, target, settings)
    return status


def _command(target: Target, settings: Settings, session: Session, options: SessionOptions) -> list[str]:
    # a master that is there is used; none is left behind
    more = ["ControlMaster=no", "RequestTTY=no", *(["NumberOfPasswordPrompts=1"] if target.password else [])]
    own = own_options(target, settings, options, more)
    return ["ssh", *own, *arguments(target), "-T", "--", target.address or target.name, session.command]


def own_options(target: Target, settings: Settings, options: SessionOptions, more: Sequence[str] = ()) -> list[str]:
    """Return nodetune's own options for `ssh`, which precede all others: of each keyword, the first counts."""
    trust = options.accept_new_host_keys or settings.trusts_new
    own = (
        f"BatchMode={'no' if target.password else 'yes'}",
        f"StrictHostKeyChecking={'accept-new' if trust else 'yes'}",
        f"ConnectTimeout={max(1, int(options.connect_seconds))}",
        *OWN_OPTIONS,
        *more,
    )
    return [word for option in own for word in ("-o", option)]


def _with_password(password: str, command: list[str], session: Session, deadline: Deadline) -> int | None:
    """Connect through sshpass, which reads the password from a pipe: no process list shows it."""
    if shutil.which("sshpass") is None:
        raise UnreachableError(
            "unsupported",
            "OpenSSH accepts no password from a program: use a key, install sshpass, or --transport paramiko",
        )
    there, here = os.pipe()
    try:
        os.write(here, password.encode() + b"\n")
        os.close(here)
        return pipes.converse(["sshpass", f"-d{there}", *command], session, deadline, pass_fds=(there,))
    finally:
        os.close(there)


def _problem(session: Session, target: Target, settings: Settings) -> UnreachableError:
    text = session.error_text()
    state = next((state for state, pattern in _MEANING if re.search(pattern, text, re.IGNORECASE)), "dropped")
    said = _line(text) or "ssh exited without a message"
    host = host_of(target, settings)
    if state == "unknown host key":
        return host.unknown()
    if state == "host key changed":
        found = re.search(r"(?:Offending .* key in|host key in|marked as revoked in) (\S+?):(\d+)", text)
        file = found[1] if found else next(iter(host.files), "~/.ssh/known_hosts")
        return host.changed("", f"{plain_text.plain(file)}{f':{found[2]}' if found else ''}", plain_text.plain(file))
    return UnreachableError(state, said + advice(state, target, settings))


def advice(state: str, target: Target, settings: Settings) -> str:
    """Return the end of a state's message: what to do."""
    user = settings.user
    if state == "authentication failed":
        return f" (as {user}): try `{login_command(target)}`, and set ansible_user or ansible_ssh_private_key_file to use another login"
    if state == "refused":
        return ": is sshd running there on this port (ansible_port)?"
    if state == "unresolved":
        return ": correct the name or give the host an address with ansible_host"
    return ""


def login_command(target: Target) -> str:
    """Return the command that logs in to the same host manually."""
    return shlex.join(["ssh", *arguments(target), target.address or target.name])


def host_of(target: Target, settings: Settings) -> host_keys.Host:
    files = (*settings.files("userknownhostsfile"), *settings.files("globalknownhostsfile"))
    return host_keys.Host(
        settings.key_name, settings.one("hostkeyalias") or settings.host, settings.port, files, login_command(target)
    )


def _line(text: str) -> str:
    """Return the most useful line of ssh's own output: the last, without the frame of a warning."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" @\r")]
    return plain_text.plain(lines[-1], 200) if lines else ""

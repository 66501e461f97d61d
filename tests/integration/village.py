"""Hosts that are broken or hostile, each in its own way: what becomes of it, and what its message must say."""

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

HOSTILE = Path(__file__).parent / "hostile.py"
RUN = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'


@dataclass(frozen=True)
class Fault:
    """A shell line that runs in place of what was asked for; what becomes of the host, and what its message must say."""

    command: str
    state: str
    says: str = ""


def answers(fault):
    return f"exec {sys.executable} {HOSTILE} '{fault}'"


FAULTS = {
    # what hangs comes first, so that it waits beside the others
    "hangs": Fault("exec sleep 45", "deadline", r"waiting for the probe's answer"),
    "reads nothing and hangs": Fault("exec sleep 45 <&-", "deadline"),
    "answers, then hangs": Fault(answers("answer, then hangs"), "ok"),
    "answers, then endless": Fault(answers("answer, then endless"), "ok"),
    "noisy": Fault(
        "echo 'Welcome!'; printf '\\033[31m<<nodetune 00 1 00000000>>'; echo warning >&2; sh -c "
        '"$SSH_ORIGINAL_COMMAND"; echo logout',
        "ok",
    ),
    "background process": Fault(f"sleep 45 & {RUN}", "ok"),
    "python3 prints first": Fault("PATH=@bin@/chatty:$PATH; " + RUN, "ok"),
    "endless output": Fault("exec yes", "too much output", r"cut off after 4 MiB; the output begins: y"),
    "10 GB of zeros": Fault("exec head -c 10000000000 /dev/zero", "too much output"),
    "endless errors": Fault("exec yes >&2", "too much output"),
    "no output": Fault("exec true", "bad answer", r"printed nothing"),
    "garbage": Fault("exec head -c 100000 /dev/urandom", "bad answer", r"no probe answer in its output"),
    "exits with 255": Fault("exit 255", "dropped|bad answer"),
    "prints like ssh": Fault("echo 'Permission denied (publickey).' >&2; exit 1", "bad answer", "Permission denied"),
    "python2": Fault("PATH=@bin@/old:$PATH; " + RUN, "no python", r"Python 2\.7: 3\.6 or newer"),
    "no python": Fault('PATH=/nowhere; /bin/sh -c "$SSH_ORIGINAL_COMMAND"', "no python", r"not found: install python3"),
    "python3 is a folder": Fault('PATH=@bin@/folder; /bin/sh -c "$SSH_ORIGINAL_COMMAND"', "no python"),
    "python3 dies": Fault("PATH=@bin@/dying:$PATH; " + RUN, "bad answer", r"libpython3\.so"),
    "deep JSON": Fault(answers("deep"), "bad answer", "too deeply"),
    "deep fact": Fault(answers("deep fact"), "ok"),
    "huge JSON": Fault(answers("huge"), "too much output", "values"),
    "bomb": Fault(answers("bomb"), "too much output", "unpacks to more than"),
    "endless number": Fault(answers("number"), "bad answer", "not JSON"),
    "infinite number": Fault(answers("infinite"), "bad answer", "Infinity"),
    "wrong types": Fault(answers("types"), "bad answer", "not a fact document"),
    "wrong kind of fact": Fault(answers("kinds"), "bad answer", "host.arch"),
    "another schema": Fault(answers("schema"), "bad answer", "another version"),
    "not UTF-8": Fault(answers("not utf-8"), "bad answer", "not JSON"),
    "not packed": Fault(answers("not zlib"), "bad answer", "cannot be unpacked"),
    "wrong checksum": Fault(answers("checksum"), "bad answer", "it cannot be unpacked"),
    "wrong size": Fault(answers("size"), "dropped", r"the answer ended after \d+ of its parts"),
    "half an answer": Fault(answers("half"), "dropped", r"the answer ended after \d+ of its parts"),
    "dropped in mid-answer": Fault(answers("half, dropped"), "dropped", r"the answer ended after \d+ of its parts"),
    "dropped": Fault(answers("dropped"), "dropped"),
    "escapes": Fault(answers("escapes"), "ok"),
    "../../x": Fault(RUN, "ok"),
}
UNREACHED = {
    "tarpit": Fault("", "deadline|unreachable"),
    "half a banner": Fault("", "deadline|unreachable"),
    "not SSH": Fault("", "bad answer|dropped", "is not SSH; it sent: HTTP/1.1 400|kex_exchange_identification"),
    "endless banner": Fault("", "bad answer|dropped|deadline"),
    "hangs up": Fault("", "dropped"),
    "refused": Fault("", "refused", r"port \d+"),
    "no name": Fault("", "unresolved", "ansible_host"),
    "-oProxyCommand=false": Fault("", "unresolved", "not a valid host name"),
    "unknown key": Fault(
        "", "unknown host key", r"ssh-keyscan -p \d+ 127\.0\.\d+\.\d+ \| ssh-keygen -lf -.*--accept-new-host-keys"
    ),
    "changed key": Fault(
        "", "host key changed", r"known_hosts:\d+: someone may intercept the connection.*ssh-keygen -R '\[127"
    ),
    "revoked key": Fault("", "host key changed", "revoked|no longer|someone may intercept the connection"),
    "no key of ours": Fault("", "authentication failed", r"as \w+\): try `ssh .*ansible_ssh_private_key_file"),
    "wrong key": Fault("", "authentication failed", r"as \w+\)"),
    "another connection": Fault("", "unsupported", "docker"),
}


class Ports:
    """Servers on loopback addresses that are no sshd."""

    def __init__(self, port):
        self._port = port
        self._open = []

    def serve(self, address, talk):
        sock = socket.create_server((address, self._port))
        self._open.append(sock)
        threading.Thread(target=self._accept, args=(sock, talk), daemon=True).start()

    def _accept(self, sock, talk):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = sock.accept()
                self._open.append(connection)
                threading.Thread(target=self._one, args=(connection, talk), daemon=True).start()

    def _one(self, connection, talk):
        with contextlib.suppress(OSError), connection:
            talk(connection)

    def close(self):
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.close()


def endless(connection):
    while True:
        connection.sendall(b"x" * 65536)


def endless_wait(connection):
    while connection.recv(1 << 16):
        pass


def commands(farm):
    """Substitutes for python3, each in a folder of its own."""
    texts = {
        "chatty": f"echo 'using Python 3 of module system'\nexec {sys.executable} \"$@\"",
        "old": "nonce=$(sed -n 's/.*<<nodetune \\([0-9a-f]*\\) old.*/\\1/p' | head -1)\nprintf '\\n<<nodetune %s old "
        "2.7>>\\n' $nonce",
        "dying": "echo 'error while loading shared libraries: libpython3.so' >&2; exit 1",
    }
    for name, text in texts.items():
        (farm.bin / name).mkdir()
        farm.script(farm.bin / name / "python3", text)
    (farm.bin / "folder/python3").mkdir(parents=True)


TALKS = {
    "tarpit": endless_wait,
    "half a banner": lambda connection: connection.sendall(b"SSH-2.0-Op") or endless_wait(connection),
    "not SSH": lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "endless banner": endless,
    "hangs up": lambda connection: None,
}
"""What servers that are no sshd do with a connection, before they close it."""

SLOW = ("hangs", "reads nothing and hangs", "tarpit", "half a banner", "endless banner", "dropped in mid-answer")


def add(farm, name, **more):
    address = farm.address()
    farm.know(address)
    farm.targets.append(farm.target(address, name, **more))
    return address


def add_unreached(farm, name):
    """A host that no login gets into, for the reason that its name says."""
    match name:
        case "unknown key":
            address = farm.address()
            farm.targets.append(farm.target(address, name))
        case "changed key":
            address = farm.address()
            farm.know(address, (farm.folder / "stranger.pub").read_text())
            farm.targets.append(farm.target(address, name))
        case "revoked key":
            address = add(farm, name)
            farm.know(address, marker="@revoked ")
        case "wrong key":
            address = add(farm, name, config=farm.with_config(key=farm.folder / "stranger"))
        case "another connection":
            address = add(farm, name, connection="docker")
        case "no name" | "-oProxyCommand=false":
            address = farm.address()
            farm.targets.append(farm.target({"no name": "no-such-host.invalid"}.get(name, name), name))
        case _:
            address = add(farm, name)
    return address


def settle(farm, good, faults, unreached):
    """Start a host for each of these faults, and so many good ones; farm.targets has them all. Close what it returns."""
    commands(farm)
    farm.targets, served = [], {}
    for number, (name, fault) in enumerate(faults.items()):
        script = farm.script(farm.folder / f"fault-{number}", fault.command.replace("@bin@", str(farm.bin)))
        served[add(farm, name)] = [f"ForceCommand {script}"]
    for number in range(good):
        served[add(farm, f"good{number}")] = []
    ports = Ports(farm.port)
    for name in unreached:
        address = add_unreached(farm, name)
        if name in TALKS:
            ports.serve(address, TALKS[name])
        elif name != "refused":
            served[address] = ["AuthorizedKeysFile none"] if name == "no key of ours" else []
    farm.targets.sort(key=lambda target: target.name not in SLOW)  # the slow ones wait beside the others
    farm.start(served)
    return ports

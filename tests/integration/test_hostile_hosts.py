"""Hosts that are broken or hostile, behind a real sshd: each is named rightly, and none harms anything else."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodetune import bundle, show
from nodetune.model import HostFacts
from nodetune.transport import STATES, Options, fanout

ASKED = bundle.families(["host.arch", "sysctl.vm.swappiness"])
HOSTILE = Path(__file__).parent / "hostile.py"
SECONDS = 12.0
RUN = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'
OPTIONS = Options(seconds=SECONDS, connect_seconds=3, most_bytes=4 << 20)


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
    "hangs": Fault("exec sleep 1000", "deadline", r"waiting for the probe's answer"),
    "reads nothing and hangs": Fault("exec sleep 1000 <&-", "deadline"),
    "answers, then hangs": Fault(answers("answer, then hangs"), "ok"),
    "answers, then endless": Fault(answers("answer, then endless"), "ok"),
    "noisy": Fault("echo 'Welcome!'; printf '\\033[31m<<nodetune 00 1 00000000>>'; echo warning >&2; sh -c \"$SSH_ORIGINAL_COMMAND\"; echo logout", "ok"),
    "background process": Fault(f"sleep 1000 & {RUN}", "ok"),
    "python3 prints first": Fault("PATH=@bin@/chatty:$PATH; " + RUN, "ok"),
    "endless output": Fault("exec yes", "too much output", r"cut off after 4 MiB; the output begins: y"),
    "10 GB of zeros": Fault("exec head -c 10000000000 /dev/zero", "too much output"),
    "endless errors": Fault("exec yes >&2", "too much output"),
    "no output": Fault("exec true", "bad answer", r"printed nothing"),
    "garbage": Fault("exec head -c 100000 /dev/urandom", "bad answer", r"no probe answer in its output"),
    "exits with 255": Fault("exit 255", "dropped|bad answer"),
    "prints like ssh": Fault("echo 'Permission denied (publickey).' >&2; exit 1", "bad answer", "Permission denied"),
    "python2": Fault("PATH=@bin@/old:$PATH; " + RUN, "no python", r"Python 2\.7: 3\.6 or newer"),
    "no python": Fault("PATH=/nowhere; /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", "no python", r"not found: install python3"),
    "python3 is a folder": Fault("PATH=@bin@/folder; /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", "no python"),
    "python3 dies": Fault("PATH=@bin@/dying:$PATH; " + RUN, "bad answer", r"libpython3\.so"),
    "deep JSON": Fault(answers("deep"), "bad answer", "too deeply"),
    "deep fact": Fault(answers("deep fact"), "bad answer", "too deeply"),
    "huge JSON": Fault(answers("huge"), "too much output", "values"),
    "bomb": Fault(answers("bomb"), "too much output", "unpacks to more than"),
    "endless number": Fault(answers("number"), "bad answer", "not JSON"),
    "infinite number": Fault(answers("infinite"), "bad answer", "Infinity"),
    "wrong types": Fault(answers("types"), "bad answer", "not a fact document"),
    "wrong kind of fact": Fault(answers("kinds"), "bad answer", "host.arch"),
    "another schema": Fault(answers("schema"), "bad answer", "another version"),
    "not UTF-8": Fault(answers("not utf-8"), "bad answer", "not JSON"),
    "not packed": Fault(answers("not zlib"), "bad answer", "cannot be unpacked"),
    "wrong checksum": Fault(answers("checksum"), "bad answer", "checksum"),
    "wrong size": Fault(answers("size"), "dropped", r"the answer ended after \d+ of 999999999999 bytes"),
    "half an answer": Fault(answers("half"), "dropped", r"the answer ended after \d+ of \d+ bytes"),
    "dropped in mid-answer": Fault(answers("half, dropped"), "dropped", r"the answer ended after \d+ of \d+ bytes"),
    "dropped": Fault(answers("dropped"), "dropped"),
    "escapes": Fault(answers("escapes"), "ok"),
    "../../x": Fault(RUN, "ok"),
}
UNREACHED = {
    "tarpit": Fault("", "deadline|unreachable"),
    "half a banner": Fault("", "deadline|unreachable"),
    "not SSH": Fault("", "bad answer|dropped", "does not speak SSH; it says: HTTP/1.1 400|kex_exchange_identification"),
    "endless banner": Fault("", "bad answer|dropped|deadline"),
    "hangs up": Fault("", "dropped"),
    "refused": Fault("", "refused", r"port \d+"),
    "no name": Fault("", "unresolved", "ansible_host"),
    "-oProxyCommand=false": Fault("", "unresolved", "no host name"),
    "unknown key": Fault("", "unknown host key", r"ssh-keyscan -p \d+ 127\.0\.1\.\d+ \| ssh-keygen -lf -.*--accept-new-host-keys"),
    "changed key": Fault("", "host key changed", r"known_hosts:\d+: someone may be in between.*ssh-keygen -R '\[127"),
    "revoked key": Fault("", "host key changed|unknown host key"),
    "no key of ours": Fault("", "authentication failed", r"as \w+\): try `ssh .*ansible_ssh_private_key_file"),
    "wrong key": Fault("", "authentication failed", r"as \w+\)"),
    "another connection": Fault("", "unsupported", "docker"),
}
GOOD = 6


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
        with contextlib.suppress(OSError):
            talk(connection)

    def close(self):
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.close()


def endless(connection):
    while True:
        connection.sendall(b"x" * 65536)


def commands(farm):
    """Stand-ins for python3, each in a folder of its own."""
    texts = {
        "chatty": f"echo 'using Python 3 of module system'\nexec {sys.executable} \"$@\"",
        "old": "nonce=$(sed -n 's/.*<<nodetune \\([0-9a-f]*\\) old.*/\\1/p' | head -1)\nprintf '\\n<<nodetune %s old 2.7>>\\n' $nonce",
        "dying": "echo 'error while loading shared libraries: libpython3.so' >&2; exit 1",
    }
    for name, text in texts.items():
        (farm.bin / name).mkdir()
        farm.script(farm.bin / name / "python3", text)
    (farm.bin / "folder/python3").mkdir(parents=True)


@pytest.fixture(scope="module")
def village(new_farm):
    """A farm with a host for each fault, and good ones among them."""
    farm = new_farm()
    commands(farm)
    served, farm.targets = {}, []
    for number, (name, fault) in enumerate(FAULTS.items()):
        script = farm.script(farm.folder / f"fault-{number}", fault.command.replace("@bin@", str(farm.bin)))
        address = farm.address()
        served[address] = [f"ForceCommand {script}"]
        farm.know(address)
        farm.targets.append(farm.target(address, name))
    for number in range(GOOD):
        address = farm.address()
        served[address] = []
        farm.know(address)
        farm.targets.append(farm.target(address, f"good{number}"))
    ports = Ports(farm.port)
    hold = threading.Event()
    talks = {"tarpit": lambda _: hold.wait(), "half a banner": lambda c: (c.sendall(b"SSH-2.0-Op"), hold.wait()), "not SSH": lambda c: (c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), c.close()), "endless banner": endless, "hangs up": lambda c: c.close()}
    for name in UNREACHED:
        address = farm.address()
        key, host = {}, {}
        if name in talks:
            ports.serve(address, talks[name])
        elif name not in ("refused", "no name"):
            served[address] = ["AuthorizedKeysFile none"] if name == "no key of ours" else []
        if name == "changed key":
            farm.know(address, (farm.folder / "stranger.pub").read_text())
        elif name == "revoked key":
            farm.know(address, marker="@revoked ")
        elif name != "unknown key":
            farm.know(address)
        if name == "wrong key":
            key = {"config": farm.with_config(key=farm.folder / "stranger")}
        if name == "another connection":
            host = {"connection": "docker"}
        where = {"no name": "no-such-host.invalid", "-oProxyCommand=false": name}.get(name, address)
        farm.targets.append(farm.target(where, name, **key, **host))
    farm.start(served)
    yield farm
    hold.set()
    ports.close()


def collect(targets, transport="auto", options=OPTIONS, forks=64, asked=ASKED):
    def script_for(_target):
        return bundle.script(asked, 10.0)

    return {target.name: outcome for target, outcome, _ in fanout.collect(targets, script_for, options, forks, transport)}


def children_of_ours():
    done = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if re.search(r"\bssh\b(?!d)", line.split(None, 1)[-1])]


@pytest.fixture(scope="module", params=["paramiko", "ssh"])
def outcomes(request, village):
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = collect(village.targets, request.param)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return request.param, found, time.monotonic() - start, grown


def test_every_fault_is_named_and_good_hosts_are_unharmed(outcomes):
    transport, found, _, _ = outcomes
    assert len(found) == len(FAULTS) + len(UNREACHED) + GOOD
    wrong = []
    for name, outcome in found.items():
        fault = (FAULTS | UNREACHED).get(name, Fault("", "ok"))
        state, message = ("ok", "") if isinstance(outcome, HostFacts) else (outcome.state, outcome.message)
        if not re.fullmatch(fault.state, state) or not re.search(fault.says, message):
            wrong.append(f"{name}: {state}: {message}")
    assert not wrong, f"{transport}\n" + "\n".join(wrong)


def test_messages_are_one_safe_line_with_what_to_do(outcomes):
    for name, outcome in outcomes[1].items():
        if not isinstance(outcome, HostFacts):
            assert outcome.state in STATES
            assert show.plain(outcome.message, 1000) == outcome.message, name
            assert 10 < len(outcome.message) < 700, name
            assert "Traceback" not in outcome.message, name


def test_facts_bear_the_name_of_the_inventory_and_no_escapes(outcomes):
    _, found, _, _ = outcomes
    assert {name: found[name].host for name in ("../../x", "escapes", "good0")} == {"../../x": "../../x", "escapes": "escapes", "good0": "good0"}
    assert all(name.isprintable() for name in found["escapes"].facts)
    assert found["good0"].facts["sysctl.vm.swappiness"]


def test_the_run_ends_by_the_deadline_and_takes_little_memory(outcomes):
    _, _, seconds, grown_kb = outcomes
    assert seconds < SECONDS + fanout.GRACE_SECONDS + 4
    assert grown_kb < 400_000


def test_nothing_is_left_running(outcomes):
    assert children_of_ours() == []
    time.sleep(0.3)
    assert [each.name for each in threading.enumerate() if each.name.startswith("nodetune ")] == []

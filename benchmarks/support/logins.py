"""Hosts behind real SSH logins on loopback addresses, and an inventory of them."""

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.support import synthetic_fleet
from benchmarks.support.measuring import BIN, UnavailableError

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "integration"))

from farm import SSHD, Farm
from village import settle

from nodetune.facts import document
from nodetune.onhost import protocol

REPLAY = """
import os, re, sys
nonce = re.search(rb"^NONCE = '([0-9a-f]+)'", sys.stdin.buffer.read(), re.MULTILINE)[1]
answer = open(os.path.join({folder!r}, os.environ["SSH_CONNECTION"].split()[2]), "rb").read()
sys.stdout.buffer.write(answer.replace(b" NONCE ", b" " + nonce + b" "))
"""


@contextlib.contextmanager
def farm(good, *, replayed=False, faults=(), unreached=()):
    """Serve so many good hosts, and a broken one for each fault. `farm.targets` has them all.

    A thousand probes at once are too much for this machine: `replayed` hosts answer with facts that were made before.
    """
    if SSHD is None:
        raise UnavailableError("no sshd on this machine: apt install openssh-server")
    Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        served = Farm(Path(folder))
        ports = settle(served, good, dict(faults), unreached)
        if replayed:
            _replay(served)
        try:
            yield served
        finally:
            ports.close()
            served.stop()
            subprocess.run(["pkill", "-f", folder], check=False)  # connections that Ansible keeps open


def _replay(served):
    """Let each host's python3 answer with facts of that host, and not run what it is sent."""
    folder = served.folder / "answers"
    folder.mkdir()
    for target, (host, _) in zip(served.targets, synthetic_fleet.hosts(len(served.targets), 1, 0), strict=True):
        (folder / target.address).write_bytes(protocol.encode(document.dump(host).encode(), "NONCE"))
    script = served.folder / "replay.py"
    script.write_text(REPLAY.format(folder=str(folder)))
    served.script(served.bin / "python3", f"exec {sys.executable} -I -S {script}")


def inventory(served, targets):
    """Write an inventory of these hosts, as a site would write it."""
    hosts = {
        each.name: {
            "ansible_host": each.address,
            "ansible_port": served.port,
            "ansible_connection": each.connection,
            "ansible_ssh_common_args": " ".join(each.ssh_args),
            # a login's own PATH may lead elsewhere; broken hosts have each its own python3
            **({"ansible_python_interpreter": str(served.bin / "python3")} if each.name.startswith("good") else {}),
        }
        for each in targets
    }
    path = served.folder / f"hosts-{len(targets)}.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    return path


def audit(served, targets, forks, *more):
    """Return the command that audits these hosts."""
    hosts = ["-i", str(inventory(served, targets)), "--forks", str(forks)]
    return [f"{BIN}/nodetune", "audit", *hosts, "--fail-on", "never", *more]

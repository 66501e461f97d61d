"""Real sshds on loopback addresses, as plain processes: with their own keys, configuration and known_hosts."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune.hosts.target import Target

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
LISTEN_AT_MOST = 16
"""sshd's own limit for one process."""


def keygen(path, *more):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path, *more], check=True)
    return Path(f"{path}.pub").read_text().strip()


def held_port():
    """A socket on a port that is nobody else's until it is closed. The sshds listen on it at other addresses."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


class Farm:
    """Many hosts of which each is a loopback address, and the OpenSSH configuration with which to reach them."""

    def __init__(self, folder):
        self.folder = folder
        self._held = held_port()
        self.port = self._held.getsockname()[1]
        self.user = getpass.getuser()
        self.key = folder / "login"
        self.host_key = keygen(folder / "host")
        (folder / "authorized").write_text(keygen(self.key) + "\n")
        keygen(folder / "stranger")
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.touch()
        self.servers = []
        self._used = 0
        self.config = self.with_config()
        self.bin = self._commands()
        # The home of every user there: a ~/.bashrc of this machine would run at each login, and may take seconds
        self.home = folder / "home"
        self.home.mkdir()
        self.home.chmod(0o1777)

    def _configuration(self, key):
        return (
            f"Host *\n  User {self.user}\n  Port {self.port}\n  IdentityFile {key}\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking ask\n"
        )

    def with_config(self, before="", key=None):
        """A configuration file with `before` in front of the farm's own, or with another key in it."""
        path = self.folder / f"config-{len(list(self.folder.glob('config-*')))}"
        path.write_text(f"{before}\n{self._configuration(key or self.key)}")
        return path

    def _commands(self):
        """A folder for PATH with a python3 that is the one that runs the tests."""
        folder = self.folder / "bin"
        folder.mkdir()
        self.script(folder / "python3", f'exec {sys.executable} "$@"')
        return folder

    def script(self, path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def address(self):
        self._used += 1
        return f"127.0.{1 + self._used // 250}.{self._used % 250 + (self._used >= 250)}"

    def start(self, hosts, *options, prefix=()):
        """Serve `hosts` (address → lines of sshd_config that hold for it) in as few processes as sshd can."""
        addresses = list(hosts)
        for first in range(0, len(addresses), LISTEN_AT_MOST):
            self._serve({each: hosts[each] for each in addresses[first : first + LISTEN_AT_MOST]}, options, prefix)

    def _serve(self, hosts, options, prefix):
        number = len(self.servers)
        config = self.folder / f"sshd-{number}"
        lines = [f"Port {self.port}", *(f"ListenAddress {each}" for each in hosts)]
        lines += ["" if any(o.startswith("HostKey ") for o in options) else f"HostKey {self.folder}/host", *options]
        lines += [f"AuthorizedKeysFile {self.folder}/authorized", "StrictModes no", "UsePAM no", "PidFile none"]
        lines += ["MaxStartups 500", "PermitRootLogin yes", "PrintMotd no", "PrintLastLog no", "UseDNS no"]
        lines += [f"SetEnv PATH={self.bin}:/usr/bin:/bin HOME={self.home}"]
        if (
            subprocess.run(
                [SSHD, "-t", "-f", "/dev/null", "-h", self.folder / "host", "-o", "PerSourcePenalties=no"],
                capture_output=True,
                check=False,
            ).returncode
            == 0
        ):
            lines.append("PerSourcePenalties no")
        for address, own in hosts.items():
            lines += [f"Match LocalAddress {address}", *(f"  {line}" for line in own)] if own else []
        config.write_text("\n".join(lines) + "\n")
        command = [*prefix, SSHD, "-D", "-E", self.folder / f"log-{number}", "-f", config]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self.servers.append(server)
        self._wait_for(next(iter(hosts)), server, number)

    def _wait_for(self, address, server, number):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection((address, self.port), 10) as sock:
                if sock.recv(4) == b"SSH-":
                    return
            if server.poll() is not None:
                break
            time.sleep(0.05)
        pytest.fail(f"sshd did not start: {(self.folder / f'log-{number}').read_text()}")

    def know(self, address, key=None, marker=""):
        with self.known_hosts.open("a") as stream:
            stream.write(f"{marker}[{address}]:{self.port} {' '.join((key or self.host_key).split()[:2])}\n")

    def target(self, address, name=None, config=None, **more):
        return Target(name or address, address=address, ssh_args=("-F", str(config or self.config)), **more)

    def stop(self):
        for server in self.servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        self._held.close()

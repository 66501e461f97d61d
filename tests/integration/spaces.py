"""Hosts as network namespaces behind leaf switches, each with a real sshd, its own /run and its own processes.

Links are as fast as `tbf` lets them be; a part is made slow by a lower rate. It takes root.
"""

import contextlib
import secrets
import shlex
import subprocess
from pathlib import Path

from farm import Farm

RATE, UPLINK = 40.0, 400.0
"""Mb/s of a host's link in each direction, and of a leaf switch's uplink."""

CPU = Path("/sys/fs/cgroup/cpu")
PERIOD = 100000


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def missing():
    """Why there can be no such hosts here, or nothing."""
    name = f"nt{secrets.token_hex(3)}"
    try:
        run("ip", "netns", "add", name)
    except OSError as problem:
        return str(problem)
    try:
        run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
        run("ip", "-n", name, "link", "add", "br0", "type", "bridge")
        run(
            "tc",
            "-n",
            name,
            "qdisc",
            "add",
            "dev",
            "eth0",
            "root",
            "tbf",
            "rate",
            "1mbit",
            "burst",
            "9kb",
            "latency",
            "9ms",
        )
    except OSError as problem:
        return str(problem)
    finally:
        run("ip", "netns", "del", name)
    return ""


class Spaces:
    """`count` hosts, so many to a leaf: names gpu1, gpu2 …; farm.target's way to each."""

    def __init__(self, folder, count, leaf):
        self.farm = Farm(folder)
        self.names = [f"gpu{number + 1}" for number in range(count)]
        self.leaves = [self.names[first : first + leaf] for first in range(0, count, leaf)]
        self._id = secrets.token_hex(2)
        self._spaces, self._devices, self._groups = [], [], []
        self._number = secrets.randbelow(200)
        self.targets = []

    def build(self, groups=()):
        """Make switches and hosts. `groups`: host -> the share of one CPU that it may use."""
        spine = self._bridge("s")
        run("ip", "addr", "add", f"{self.address(-1)}/24", "dev", spine)
        for number, members in enumerate(self.leaves):
            leaf = self._bridge(f"l{number}")
            self._cable(spine, f"u{number}", f"d{number}", leaf)
            for name in members:
                self._host(name, leaf)
        served = {name: self.address(self.names.index(name)) for name in self.names}
        for name, address in served.items():
            self.farm.start({address: ()}, prefix=self._inside(name, dict(groups).get(name)))
            self.farm.know(address)
            self.targets.append(self.farm.target(address, name=name))

    def address(self, number):
        return f"10.199.{self._number}.{number + 2}"

    def device(self, name):
        """The switch's end of a host's cable."""
        return f"nt{self._id}{name}"

    def _bridge(self, name):
        device = self.device(name)
        run("ip", "link", "add", device, "type", "bridge")
        self._devices.append(device)
        run("ip", "link", "set", device, "up")
        return device

    def _cable(self, one, up, down, other):
        """Join two switches by an uplink, as fast as UPLINK both ways."""
        ends = self.device(up), self.device(down)
        run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        self._devices.append(ends[0])
        for end, switch in zip(ends, (one, other), strict=True):
            run("ip", "link", "set", end, "master", switch)
            run("ip", "link", "set", end, "up")
            self.limit(end, UPLINK)

    def _host(self, name, leaf):
        space, port = self.space(name), self.device(name)
        run("ip", "netns", "add", space)
        self._spaces.append(space)
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        run("ip", "link", "set", port, "master", leaf)
        run("ip", "link", "set", port, "up")
        run("ip", "-n", space, "link", "set", "lo", "up")
        run("ip", "-n", space, "addr", "add", f"{self.address(self.names.index(name))}/24", "dev", "eth0")
        run("ip", "-n", space, "link", "set", "eth0", "up")
        self.slow_nic(name, RATE)

    def space(self, name):
        return f"nt{self._id}-{name}"

    def limit(self, device, rate, space=None):
        where = ["-n", space] if space else []
        run(
            "tc",
            *where,
            "qdisc",
            "replace",
            "dev",
            device,
            "root",
            "tbf",
            "rate",
            f"{rate}mbit",
            "burst",
            "16kb",
            "latency",
            "40ms",
        )

    def slow_nic(self, name, rate):
        """Give a host's link another rate, both ways."""
        self.limit(self.device(name), rate)
        self.limit("eth0", rate, self.space(name))

    def slow_uplink(self, leaf, rate):
        for end in (f"u{leaf}", f"d{leaf}"):
            self.limit(self.device(end), rate)

    def slow_path(self, one, other, rate):
        """Slow down what one host sends to another, and the way back. 0: nothing large gets through."""
        for here, there in ((one, other), (other, one)):
            self._towards(here, self.address(self.names.index(there)), rate)

    def _towards(self, name, address, rate):
        tc, device = ["tc", "-n", self.space(name)], ["dev", "eth0"]
        run(*tc, "qdisc", "replace", *device, "root", "handle", "1:", "htb", "default", "10")
        run(*tc, "class", "add", *device, "parent", "1:", "classid", "1:1", "htb", "rate", f"{RATE}mbit")
        run(*tc, "class", "add", *device, "parent", "1:1", "classid", "1:10", "htb", "rate", f"{RATE}mbit")
        run(*tc, "class", "add", *device, "parent", "1:1", "classid", "1:20", "htb", "rate", f"{rate}mbit")
        match = ["match", "ip", "dst", f"{address}/32", "flowid", "1:20"]
        run(*tc, "filter", "add", *device, "parent", "1:", "protocol", "ip", "u32", *match)

    def cut_path(self, one, other):
        """Let nothing pass from one host to another, and back."""
        for here, there in ((one, other), (other, one)):
            address = self.address(self.names.index(there))
            run("ip", "-n", self.space(here), "route", "add", "blackhole", f"{address}/32")

    def python(self, name, text):
        """Return a script to be a host's python3."""
        return self.farm.script(self.farm.folder / f"python-{name}", text)

    def is_inside(self, pid, name):
        """Return whether a process is on a host."""
        spaces = [Path(f"/proc/{pid}/ns/net"), Path(f"/run/netns/{self.space(name)}")]
        try:
            return spaces[0].stat().st_ino == spaces[1].stat().st_ino
        except OSError:  # it has ended
            return False

    def _inside(self, name, share):
        """Words that start a program on the host."""
        words = ["mount -t tmpfs none /run", "mkdir /run/sshd", 'exec "$@"']
        before = []
        if share:
            group = CPU / f"nt{self._id}-{name}"
            group.mkdir()
            self._groups.append(group)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD)))
            before = ["sh", "-ec", f'echo 0 > {shlex.quote(str(group / "cgroup.procs"))}; exec "$@"', "sh"]
        unshare = ["unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc"]
        return [*before, "ip", "netns", "exec", self.space(name), *unshare, "sh", "-ec", "; ".join(words), "sh"]

    def close(self):
        self.farm.stop()
        for space in self._spaces:
            with contextlib.suppress(OSError):
                run("ip", "netns", "del", space)
        for device in self._devices:
            with contextlib.suppress(OSError):
                run("ip", "link", "del", device)
        for group in self._groups:
            with contextlib.suppress(OSError):
                group.rmdir()

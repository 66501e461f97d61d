"""The processes on GPUs and those that they started: their CPU time, and what their first threads wait for.

Looks at /proc only, which stops no process. Another user's system calls are visible to root alone.
"""

import collections
import os
import pwd
import re
import time

from nodetune.onhost import slurm_cgroup
from . import read, watch_host, watch_waits

MAX_PROCESSES = 512
"""Processes to follow on a host."""

MIN_SECONDS = 0.05
"""Seconds from which an average has a meaning."""

CONTAINER = re.compile(r"(?:docker|cri-containerd|crio|libpod|containerd)[-/](?:conmon-)?([0-9a-f]{64})")
POD = re.compile(r"kubepods.*?/(?:[\w.-]*-)?(?:pod)([0-9a-f][0-9a-f_-]{31,35})")
BARE_CONTAINER = re.compile(r"/([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
NCCL_THREAD = "pt_nccl"
"""How PyTorch begins the names of the threads that watch NCCL: a process of a job on several GPUs."""

Stat = collections.namedtuple("Stat", "name state parent ticks start")  # noqa: PYI024  (typing takes too long to import)


class Processes:
    """The processes that compute on GPUs when this is made, and their descendants. `users`: {GPU: process numbers}."""

    def __init__(self, users):
        self._gpus = {}
        for gpu, pids in sorted(users.items()):
            for pid in pids:
                self._gpus.setdefault(pid, []).append(gpu)
        self._followed = {pid: Process(pid, above) for pid, above in _with_descendants(self._gpus)[:MAX_PROCESSES]}
        self._limits = {each.cgroup: throttled(each.cgroup) for each in self._followed.values()}

    def look(self):
        for each in self._followed.values():
            each.look()

    def told(self):
        """Return {process number: what it did}; one that ended is marked."""
        found = {}
        for pid, each in sorted(self._followed.items()):
            told = each.told()
            if told:
                told["gpus"] = self._gpus.get(pid, [])
                told["throttled"] = _share(self._limits.get(each.cgroup), throttled(each.cgroup))
                found[str(pid)] = told
        return found

    def users(self):
        """Return {user number: name}; the number itself for a user without one."""
        uids = {each.uid for each in self._followed.values() if each.uid is not None}
        return {str(uid): _user(uid) for uid in sorted(uids)}


class Process:
    """One process from its first look. `above`: the process on a GPU that started it, or itself."""

    def __init__(self, pid, above):
        self.pid, self.above = pid, above
        self._began = self._looked = time.monotonic()
        self._first = self._last = stat(pid)
        self._delay = self._last_delay = _delay(pid)
        self._bytes = self._last_bytes = _bytes_read(pid)
        self._doing = collections.Counter()
        self._ended = self._first is None
        self.cgroup = read.text_or("/proc/{}/cgroup".format(pid))
        owner = re.search(r"^Uid:\s+(\d+)", read.text_or("/proc/{}/status".format(pid)), re.MULTILINE)
        self.uid = int(owner.group(1)) if owner else None
        self._nccl = pid == above and any(name.startswith(NCCL_THREAD) for name in _threads(pid))

    def look(self):
        """Note what it does now."""
        if self._ended:
            return
        now = stat(self.pid)
        if now is None or now.start != self._first.start or now.state in "ZX":
            self._ended = True
            return
        self._last, self._looked = now, time.monotonic()
        self._last_delay, self._last_bytes = _delay(self.pid), _bytes_read(self.pid)
        self._doing[watch_waits.doing(self.pid, now.state)] += 1

    def told(self):
        """Return its averages until the last look; None if it was never visible."""
        if self._first is None:
            return None
        looks, seconds = sum(self._doing.values()), max(self._looked - self._began, MIN_SECONDS)
        ticks = watch_host.rise(self._first.ticks, self._last.ticks) or 0
        return {
            "name": self._first.name,
            "uid": self.uid,
            "above": self.above,
            "job": job(self.cgroup),
            "cores": round(ticks / os.sysconf("SC_CLK_TCK") / seconds, 3),
            "delay": _rate(self._delay, self._last_delay, seconds * 1e9),
            "read": _rate(self._bytes, self._last_bytes, seconds * 1e6),
            "doing": {name: round(count / looks, 3) for name, count in sorted(self._doing.items())},
            "looks": looks,
            "nccl": self._nccl,
            "ended": self._ended,
        }


def _with_descendants(roots):
    """Return [(process, the process on a GPU above it)], those on GPUs first. One on a GPU is its own."""
    children = {}
    for entry in _processes():
        found = stat(int(entry))
        if found:
            children.setdefault(found.parent, []).append(int(entry))
    followed = [(pid, pid) for pid in sorted(roots)]
    for pid, above in followed:
        followed += [(child, above) for child in children.get(pid, ()) if child not in roots]
    return followed


def _processes():
    try:
        return [entry for entry in read.names_in("/proc") if entry.isdigit()]
    except OSError:
        return []


def stat(pid):
    """Return the Stat of a process; None if it is gone or not visible."""
    head, _, rest = read.text_or("/proc/{}/stat".format(pid)).rpartition(")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return Stat(head.partition("(")[2], fields[0], int(fields[1]), ticks, int(fields[19]))


def _delay(pid):
    """Return the nanoseconds for which its first thread was ready and had no CPU; None if the kernel does not say."""
    fields = read.text_or("/proc/{0}/task/{0}/schedstat".format(pid)).split()
    return int(fields[1]) if len(fields) == 3 else None


def _bytes_read(pid):
    """Return the bytes that it had read from disks and network file systems; None if that is hidden."""
    found = re.search(r"^read_bytes: (\d+)", read.text_or("/proc/{}/io".format(pid)), re.MULTILINE)
    return int(found.group(1)) if found else None


def _threads(pid):
    folder = "/proc/{}/task".format(pid)
    try:
        return [read.text_or("{}/{}/comm".format(folder, thread)) for thread in read.names_in(folder)]
    except OSError:
        return []


def _rate(before, after, whole):
    if before is None or after is None:
        return None
    risen = watch_host.rise(before, after)
    return None if risen is None else round(risen / whole, 3)


def job(cgroup):
    """Return the job of a process by its cgroups: {"slurm": 71}, {"container": id, "pod": id}; empty for others."""
    slurm, pod = slurm_cgroup.job(cgroup, _titled, read.ROOT), POD.search(cgroup)
    if slurm.isdigit():
        return {"slurm": slurm}
    container = CONTAINER.search(cgroup) or (BARE_CONTAINER.search(cgroup) if pod else None)
    found = {"container": container.group(1)} if container else {}
    if pod:
        found["pod"] = pod.group(1).replace("_", "-")
    return found


def _titled(pid):
    found = slurm_cgroup.STEPD.match(read.text_or("/proc/{}/cmdline".format(pid)))
    return found.group(1) if found else ""


def throttled(cgroup):
    """Return (periods, periods in which its CPU limit stopped it) of a cgroup (v2) and those above; the worst one's."""
    found = re.search(r"^0::(/.*)$", cgroup, re.MULTILINE)
    path, worst = found.group(1) if found else "", None
    while path.strip("/"):
        told = dict(
            re.findall(r"^(nr_\w+) (\d+)$", read.text_or("/sys/fs/cgroup{}/cpu.stat".format(path)), re.MULTILINE)
        )
        if int(told.get("nr_periods", 0)):
            each = int(told["nr_periods"]), int(told.get("nr_throttled", 0))
            worst = each if worst is None or each[1] > worst[1] else worst
        path = path.rpartition("/")[0]
    return worst


def _share(before, after):
    """Return the share of the periods in which a CPU limit stopped it; None without a limit."""
    if before is None or after is None or after[0] <= before[0]:
        return None
    return round(max(0, after[1] - before[1]) / (after[0] - before[0]), 3)


def _user(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

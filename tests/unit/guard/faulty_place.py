"""Where the guard runs with a fault: a node with its own process namespace, GPUs on its bus, and cgroups with limits."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from nodetune.guard.deploy import node_changes
from tests.unit.guard import install

SKEW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *into)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, into);
    if (clock == CLOCK_REALTIME && rand() % 2) into->tv_sec += atol(getenv("SKEW"));
    return code;
}
"""


def skewed_clock(folder):
    """Build a library whose clock is now and then SKEW seconds off."""
    source, library = folder / "skew.c", folder / "skew.so"
    source.write_text(SKEW)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


def sh(*lines):
    """A shell in between that does this first, and then becomes what follows."""
    return ("sh", "-c", "; ".join([*lines, 'exec "$@"']), "sh")


def in_namespace(*lines):
    return ("unshare", "--mount", *sh(*lines))


class Place:
    """A node with its own process namespace, and GPUs on its bus."""

    def __init__(self, folder, program, nvml, skew, alone, timely):
        self.machine, self.alone, self.timely = install.Machine(), alone, timely
        self.node = install.Node(folder / "node", program, nvml)
        self.skew, self._job, self._groups = skew, 1000, []
        self.node.run_folder.mkdir()
        (self.node.run_folder / "uncounted").mkdir()
        self.seconds = {}
        (folder / "drivers" / "nvidia").mkdir(parents=True)
        addresses = (line.split()[0] for line in _addresses(program, nvml, self.node))
        for address in addresses:
            device = folder / "devices" / address
            device.mkdir(parents=True)
            for name, content in {"vendor": "0x10de", "device": "0x2335", "class": "0x030200"}.items():
                (device / name).write_text(f"{content}\n")
            (device / "driver").symlink_to(folder / "drivers" / "nvidia")
        self.bus = in_namespace(f"mount --bind {folder}/devices /sys/bus/pci/devices")

    def give(self, seconds):
        """Let the policy give these seconds. `most` is what the guard promises then."""
        if seconds != self.seconds:
            self.seconds = seconds
            self.node.write_policy(mode="enforce", seconds=seconds)
            self.node.write_entry(seconds=seconds["total"] + 1)
            self.most = node_changes.most_seconds(json.loads(self.node.policy.read_text()))

    def job(self):
        self._job += 1
        return self._job

    def _group(self, controller, name, file, value):
        """A cgroup with this setting, of either version."""
        root = Path("/sys/fs/cgroup") / controller
        folder = (root if root.is_dir() else Path("/sys/fs/cgroup")) / f"nodetune-{os.getpid()}-{id(self)}-{name}"
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(value)
        self._groups.append(folder)
        return folder

    def cpu(self, level):
        old = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists()
        file, value = ("cpu.cfs_quota_us", f"{level * 1000}") if old else ("cpu.max", f"{level * 1000} 100000")
        return self._group("cpu", f"cpu{level}", file, value)

    def processes(self, most):
        return self._group("pids", f"pids{most}", "pids.max", str(most))

    def after(self, *, keep):
        """Nothing of one run is there in the next, but its fault where it is to `keep`."""
        if not keep:
            self.node.control()
        self.node.forget()
        end = time.monotonic() + install.LATEST
        while self.node.readers() and time.monotonic() < end:
            for pid in self.node.readers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def end(self):
        self.machine.end()
        for folder in set(self._groups):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _addresses(program, nvml, node):
    """The addresses at which the substitute has its GPUs."""
    code = f"""
import sys
sys.path.insert(0, {str(program)!r})
import pynvml as n
n.nvmlInit()
for index in range(n.nvmlDeviceGetCount()):
    text = n.nvmlDeviceGetPciInfo(n.nvmlDeviceGetHandleByIndex(index)).busId
    print((text if isinstance(text, str) else text.decode()).lower()[-12:])
"""
    return node.python(code).stdout.splitlines()

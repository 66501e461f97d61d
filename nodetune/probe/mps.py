"""The control daemons of CUDA MPS on this host, with user and pipe directory: `mps.daemons`."""

import pwd
import re

from . import processes, read

CONTROL = "nvidia-cuda-mps-control"
DEFAULT_PIPES = "/tmp/nvidia-mps"
MAX_BYTES = 65536


def collect(names, step):
    if "daemons" in names:
        step(CONTROL)
        yield "daemons", read.tried(_daemons)


def _daemons():
    try:
        pids = processes.running().get(CONTROL, [])
    except FileNotFoundError:
        return read.unread(read.lacks("/proc hides other users' processes"))
    return read.value([_daemon(pid) for pid in pids if _environment(pid) is not None])


def _daemon(pid):
    environment = _environment(pid) or {}
    cgroup = read.text_or("/proc/{}/cgroup".format(pid))
    unit = re.search(r"/([\w@.:-]+\.service)", cgroup)
    return {
        "pid": pid,
        "user": _user(pid),
        "pipe_directory": environment.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPES),
        "unit": unit.group(1) if unit else "",
    }


def _environment(pid):
    """Return the initial environment of a process; None if it has ended. Raise OSError if it is hidden."""
    try:
        content = read.raw("/proc/{}/environ".format(pid), MAX_BYTES)
    except FileNotFoundError:
        return None
    return dict(line.split("=", 1) for line in content.split("\0") if "=" in line)


def _user(pid):
    found = re.search(r"^Uid:\s+\d+\s+(\d+)", read.text_or("/proc/{}/status".format(pid)), re.M)
    if not found:
        return ""
    try:
        return pwd.getpwuid(int(found.group(1))).pw_name
    except KeyError:
        return found.group(1)

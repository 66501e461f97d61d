"""Whether the host is idle at the time of a change, as the plan was made earlier: its GPUs, and the node in Slurm."""

import os

from . import nvml, scheduler
from .problem import ChangeError, StopError, WaitError

NVML_SECONDS = 60
"""Seconds for all GPUs. A GPU without clients takes seconds to answer; a hanging driver never does."""

DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 9, 12
DRIVER = "/proc/driver/nvidia/version"


def require(guard):
    """Raise WaitError unless the host meets `guard`: {"gpu_idle": true, "drained": true}.

    `kubernetes` is what the cluster said to the controller: why the node is in service, or nothing.
    """
    unknown = set(guard) - {"gpu_idle", "drained", "kubernetes"}
    if unknown:
        raise StopError(f"this version does not support guard {', '.join(sorted(unknown))}: nothing is changed")
    if guard.get("drained"):
        reason = scheduler.in_service(guard.get("kubernetes"))
        if reason:
            raise WaitError(reason)
    if guard.get("gpu_idle"):
        _gpus_idle()


def _gpus_idle():
    try:
        users = nvml.in_child(gpu_users, NVML_SECONDS)
    except ChangeError as problem:
        raise WaitError(f"unknown whether GPUs are in use, so nothing is changed: {problem}") from None
    if users:
        gpu, pid = users[0]
        more = f" (and {len(users) - 1} more)" if len(users) > 1 else ""
        raise WaitError(f"GPU{gpu} is in use by process {pid} ({_command(pid)}){more}: nothing is changed")


def gpu_users(step):
    """Return [[GPU index, pid], …] of processes that compute; none without a driver. Raise ChangeError."""
    try:
        library = nvml.binding()
    except ChangeError:
        if os.path.exists(DRIVER):
            raise
        return []
    try:
        session = nvml.Session(library, step)
    except nvml.RefusedError as refused:
        if refused.code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND):
            return []
        raise
    count = session.call("", "nvmlDeviceGetCount")
    return [[index, pid] for index in range(count) for pid in _users(session.gpu(index))]


def _users(gpu):
    through_mps = gpu.supported("nvmlDeviceGetMPSComputeRunningProcesses") or []
    return sorted({process.pid for process in [*gpu("nvmlDeviceGetComputeRunningProcesses"), *through_mps]})


def _command(pid):
    """Return the command line of a process for messages, with blanks for everything unprintable."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as opened:
            text = opened.read(200).replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "its command is not visible here"
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:80] or "no command line"

"""Find the processes that use the GPUs of a host. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView, FactUnreadError
from nodetune.api.model import Absent, HostFacts, Value
from nodetune.foundation import text as plain_text

NVML = "gpu.nvml"
GPU_PROCESSES = ("gpu.compute_running_processes", "gpu.mps_compute_running_processes")
MAX_NAMED = 3
FACTS = (NVML, *GPU_PROCESSES)


def busy(facts: HostFacts) -> str:
    """Return who uses the GPUs, so that disruptive changes must wait; empty if nobody does."""
    try:
        found = users(facts)
    except FactUnreadError as problem:
        return str(problem)
    return f"waits until these no longer use a GPU: {found}" if found else ""


def in_slurm(facts: HostFacts) -> bool:
    """Return whether slurmd runs on the host, so that draining the node ends its jobs. Unknown counts as no."""
    found = facts.get("services.processes")
    return isinstance(found, Value) and isinstance(found.value, Mapping) and bool(found.value.get("slurmd"))


def users(facts: HostFacts) -> str:
    """Return the processes that compute on GPUs, by name and PID. Raise FactUnreadError if unknown."""
    if isinstance(facts.get(NVML), Absent):
        return ""
    try:
        found = sorted({_user(each) for name in GPU_PROCESSES for each in _processes(facts, name)})
    except (FactUnreadError, TypeError, ValueError, AttributeError) as problem:
        raise FactUnreadError(f"unknown whether a process uses a GPU ({plain_text.plain(problem)})") from None
    return _some(found)


def _processes(facts: HostFacts, name: str) -> list[Any]:
    of_each_gpu = FactsView(facts, GPU_PROCESSES, lookup).get(name) or {}
    return [process for processes in of_each_gpu.values() for process in processes]


def _user(process: Mapping[str, Any]) -> str:
    return f"{process.get('name') or 'process'} ({process.get('pid')})"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return plain_text.plain(", ".join(names[:MAX_NAMED]) + more)

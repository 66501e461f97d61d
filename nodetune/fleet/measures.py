"""Numbers of a host that are held against those of its siblings. Pure.

A function here is a measure of comparisons.yml: facts → device → number. Where several populations must not be mixed (GPUs
under load and idle ones), the device is left out, or the number is made comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from nodetune.derived import needs
from nodetune.view import View

Measure = Callable[[View], dict[str, float]]

BUSY = 0.5
"""A GPU that draws this share of its power limit is under load (as in the check gpu-clock-unequal)."""

SIMILAR = 0.15
"""GPUs whose draw differs by less than this share of the limit do the same."""

DAY = 86_400


def named(name: str) -> Measure:
    """The measure of that name. Raises KeyError."""
    measure: Measure = globals()[name]
    return measure


def needs_of(name: str) -> tuple[str, ...]:
    """The facts that a measure looks at."""
    found: tuple[str, ...] = named(name).needs  # type: ignore[attr-defined]
    return found


@needs("memory.total_kb")
def memory_gib(facts: View) -> dict[str, float]:
    return {"": facts["memory.total_kb"] / (1 << 20)}


def _loads(facts: View) -> dict[str, float]:
    """The share of its power limit that each GPU draws."""
    limits = facts["gpu.power_management_limit"]
    return {gpu: draw / limits[gpu] for gpu, draw in facts["gpu.power_usage"].items() if limits.get(gpu)}


@needs("gpu.temperature", "gpu.power_usage", "gpu.power_management_limit")
def gpu_over_its_siblings(facts: View) -> dict[str, float]:
    """°C above the median of the other GPUs of the host that draw about as much: a job that has just ended heats all."""
    loads, temperatures = _loads(facts), facts["gpu.temperature"]
    found = {}
    for gpu, load in loads.items():
        others = [temperatures[each] for each in loads if each != gpu and abs(loads[each] - load) < SIMILAR]
        if len(others) >= 3:
            found[gpu] = temperatures[gpu] - median(others)
    return found


@needs("gpu.temperature", "gpu.power_usage", "gpu.power_management_limit")
def host_under_load(facts: View) -> dict[str, float]:
    """The median temperature of the GPUs that are under load, where most are: what idle ones show is what they did last."""
    loads, temperatures = _loads(facts), facts["gpu.temperature"]
    busy = [temperatures[gpu] for gpu, load in loads.items() if load >= BUSY]
    return {"": float(median(busy))} if busy and len(busy) * 2 > len(loads) else {}


def _days(facts: View) -> float:
    """Days since boot; at least one, so that the start is not taken for the rule."""
    return max(1.0, float(facts["host.uptime_s"]) / DAY)


def _rates(facts: View, counts: Mapping[str, float]) -> dict[str, float]:
    days = _days(facts)
    return {device: count / days for device, count in counts.items()}


def _sum(counters: Mapping[str, Any]) -> float:
    return float(sum(each for each in counters.values() if isinstance(each, int | float)))


@needs("gpu.pcie_replay_counter", "host.uptime_s")
def pcie_replays_a_day(facts: View) -> dict[str, float]:
    return _rates(facts, facts["gpu.pcie_replay_counter"])


@needs("gpu.ecc_corrected_volatile")
def gpu_corrected_errors(facts: View) -> dict[str, float]:
    return {gpu: float(count) for gpu, count in facts["gpu.ecc_corrected_volatile"].items()}


def _largest(counts: Mapping[str, float]) -> dict[str, float]:
    worst = max(counts, key=counts.__getitem__, default=None)
    return {} if worst is None else {worst: counts[worst]}


RDMA_ERRORS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors")


@needs("rdma.counters", "host.uptime_s")
def rdma_errors_a_day(facts: View) -> dict[str, float]:
    """Errors of the link itself; discards are left out, which congestion makes on healthy ports."""
    ports = facts["rdma.counters"].items()
    return _rates(
        facts, {port: _sum({name: counters.get(name, 0) for name in RDMA_ERRORS}) for port, counters in ports}
    )


@needs("pci.aer", "host.uptime_s")
def pcie_errors_a_day(facts: View) -> dict[str, float]:
    """Of the worst device: a hundred numbers a host would say no more."""
    counts = {bdf: _sum(kinds.get("correctable", {})) for bdf, kinds in facts["pci.aer"].items()}
    return _rates(facts, _largest(counts))


@needs("memory.edac.corrected", "memory.edac.seconds")
def memory_errors_a_day(facts: View) -> dict[str, float]:
    """Of the worst module."""
    days = max(1.0, facts["memory.edac.seconds"] / DAY)
    return {module: count / days for module, count in _largest(facts["memory.edac.corrected"]).items()}


LEAST_SEGMENTS = 1_000_000
"""Below this, a share of segments says nothing."""


@needs("tcp.segments")
def tcp_retransmits_per_mille(facts: View) -> dict[str, float]:
    segments = facts["tcp.segments"]
    sent = segments["sent"]
    return {"": 1000 * segments["retransmitted"] / sent} if sent >= LEAST_SEGMENTS else {}


@needs("net.carrier_changes", "host.uptime_s")
def carrier_changes_a_day(facts: View) -> dict[str, float]:
    return _rates(facts, facts["net.carrier_changes"])


@needs("block.smart")
def nvme_used_percent(facts: View) -> dict[str, float]:
    """0 is a new drive, 100 one that has done all that it was made for (the drive counts on to 255)."""
    return {
        drive: float(told["used_percent"]) for drive, told in facts["block.smart"].items() if "used_percent" in told
    }

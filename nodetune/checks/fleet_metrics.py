"""Numbers of a host that are compared with those of its peers. Pure.

A function here is a measure of fleet_comparisons.yml: facts → device → number. Where populations must not be mixed (GPUs under
load and idle ones), the function skips the device or makes its number comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodetune.api.derived import needs
from nodetune.api.facts_view import FactsView
from nodetune.checks.shared.gpu_cards import GRACE
from nodetune.foundation.stats import median

Measure = Callable[[FactsView], dict[str, float]]

BUSY = 0.5
"""A GPU that draws this share of its power limit is under load (as in the check gpu-clock-unequal)."""

SIMILAR = 0.15
"""GPUs whose draw differs by less than this share of the limit do the same work."""

DAY = 86_400

POWER_LIMITS = ("enforced_power_limit", "power_management_limit", "power_management_default_limit")


def named(name: str) -> Measure:
    """Return the measure of that name. Raise KeyError."""
    measure: Measure = globals()[name]
    return measure


def needs_of(name: str) -> tuple[str, ...]:
    """Return the facts that a measure reads."""
    found: tuple[str, ...] = named(name).needs  # type: ignore[attr-defined]
    return found


@needs("memory.total_kb")
def memory_gib(facts: FactsView) -> dict[str, float]:
    return {"": facts["memory.total_kb"] / (1 << 20)}


def _loads(facts: FactsView) -> dict[str, float]:
    """Return the share of its power limit that each GPU draws."""
    limits = facts["gpu.power_management_limit"]
    return {gpu: draw / limits[gpu] for gpu, draw in facts["gpu.power_usage"].items() if limits.get(gpu)}


@needs("gpu.temperature", "gpu.power_usage", "gpu.power_management_limit")
def gpu_above_its_peers(facts: FactsView) -> dict[str, float]:
    """Return °C above the median of the other GPUs with a similar draw: a job that has just ended heats all."""
    loads, temperatures = _loads(facts), facts["gpu.temperature"]
    found = {}
    for gpu, load in loads.items():
        others = [temperatures[each] for each in loads if each != gpu and abs(loads[each] - load) < SIMILAR]
        if len(others) >= 3:
            found[gpu] = temperatures[gpu] - median(others)
    return found


@needs("gpu.temperature", "gpu.power_usage", "gpu.power_management_limit")
def host_under_load(facts: FactsView) -> dict[str, float]:
    """Return the median temperature of the GPUs under load, if most are: idle ones still show their last work."""
    loads, temperatures = _loads(facts), facts["gpu.temperature"]
    busy = [temperatures[gpu] for gpu, load in loads.items() if load >= BUSY]
    return {"": float(median(busy))} if busy and len(busy) * 2 > len(loads) else {}


@needs("gpu.enforced_power_limit", "gpu.power_management_limit", "gpu.power_management_default_limit", "gpu.names")
def enforced_watts(facts: FactsView) -> dict[str, float]:
    """Return the highest enforced power limit of the GPUs (W), unless a lower one is set or they share power with the CPU."""
    limits, wanted, defaults = (facts.readable(f"gpu.{name}", {}) for name in POWER_LIMITS)
    lowered = any(limit < defaults.get(gpu, limit) for gpu, limit in wanted.items())
    own = limits and not lowered and not GRACE.search("".join(facts["gpu.names"].values()))
    return {"": max(limits.values()) / 1000} if own else {}


def _days(facts: FactsView) -> float:
    """Return days since boot, at least one: the first hours are not representative."""
    return max(1.0, float(facts["host.uptime_s"]) / DAY)


def _rates(facts: FactsView, counts: Mapping[str, float]) -> dict[str, float]:
    days = _days(facts)
    return {device: count / days for device, count in counts.items()}


def _sum(counters: Mapping[str, Any]) -> float:
    return float(sum(each for each in counters.values() if isinstance(each, (int, float))))


@needs("gpu.pcie_replay_counter", "host.uptime_s")
def pcie_replays_a_day(facts: FactsView) -> dict[str, float]:
    return _rates(facts, facts["gpu.pcie_replay_counter"])


@needs("gpu.ecc_corrected_volatile")
def gpu_corrected_errors(facts: FactsView) -> dict[str, float]:
    return {gpu: float(count) for gpu, count in facts["gpu.ecc_corrected_volatile"].items()}


def _largest(counts: Mapping[str, float]) -> dict[str, float]:
    worst = max(counts, key=counts.__getitem__, default=None)
    return {} if worst is None else {worst: counts[worst]}


RDMA_ERRORS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors")


@needs("rdma.counters", "host.uptime_s")
def rdma_errors_a_day(facts: FactsView) -> dict[str, float]:
    """Count errors of the link itself, without discards: congestion causes those on healthy ports."""
    ports = facts["rdma.counters"].items()
    return _rates(
        facts, {port: _sum({name: counters.get(name, 0) for name in RDMA_ERRORS}) for port, counters in ports}
    )


@needs("pci.aer", "host.uptime_s")
def pcie_errors_a_day(facts: FactsView) -> dict[str, float]:
    """Report the worst device only: a hundred numbers per host would add nothing."""
    counts = {bdf: _sum(kinds.get("correctable", {})) for bdf, kinds in facts["pci.aer"].items()}
    return _rates(facts, _largest(counts))


@needs("memory.edac.corrected", "memory.edac.seconds")
def memory_errors_a_day(facts: FactsView) -> dict[str, float]:
    """Report the worst module only."""
    days = max(1.0, facts["memory.edac.seconds"] / DAY)
    return {module: count / days for module, count in _largest(facts["memory.edac.corrected"]).items()}


MIN_SEGMENTS = 1_000_000
"""Minimum number of segments for a meaningful share."""


@needs("tcp.segments")
def tcp_retransmits_per_mille(facts: FactsView) -> dict[str, float]:
    segments = facts["tcp.segments"]
    sent = segments["sent"]
    return {"": 1000 * segments["retransmitted"] / sent} if sent >= MIN_SEGMENTS else {}


@needs("net.carrier_changes", "host.uptime_s")
def carrier_changes_a_day(facts: FactsView) -> dict[str, float]:
    return _rates(facts, facts["net.carrier_changes"])


@needs("block.smart")
def nvme_used_percent(facts: FactsView) -> dict[str, float]:
    """Return the used endurance: 0 is a new drive, 100 one at its rated endurance (the drive counts on to 255)."""
    return {drive: float(log["used_percent"]) for drive, log in facts["block.smart"].items() if "used_percent" in log}

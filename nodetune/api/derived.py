"""Facts computed from other facts. Pure.

A function `name` here is the fact `derived.name`; `@needs` declares what it reads. It returns a value, or raises
the exception of the view if a needed fact is absent or unread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import Absent, Fact, HostFacts, Unread, Value

Function = Callable[[FactsView], Any]


def needs(*names: str) -> Callable[[Function], Function]:
    """Declare the facts from which a derived fact is computed."""

    def mark(function: Function) -> Function:
        function.needs = names  # type: ignore[attr-defined]
        return function

    return mark


MIB = 1 << 20
INTRA_SITE_RTT_SECONDS = 0.001
TEN_GIGABIT_MBPS = 10_000


@needs("net.links")
def fastest_link_mbps(facts: FactsView) -> int:
    """Return the speed of the fastest physical Ethernet or IPoIB link that is up (Mb/s)."""
    speeds: list[int] = [link.get("speed_mbps") or 0 for link in facts["net.links"].values() if link.get("physical")]
    if not any(speeds):
        raise FactAbsentError("no physical link reports its speed")
    return max(speeds)


@needs("derived.fastest_link_mbps", "memory.total_kb")
def tcp_buffer_bytes(facts: FactsView) -> int:
    """Return the largest buffer that one TCP flow should be allowed (bytes).

    Bandwidth-delay product of the fastest link at a 1 ms round trip, doubled because the kernel counts its own
    overhead in the buffer, rounded up to a power of two, between 16 MiB and 256 MiB, and never above 1 % of RAM.
    For links slower than 10 Gb/s, the kernel's default maxima suffice.
    """
    speed: int = facts["derived.fastest_link_mbps"]
    if speed < TEN_GIGABIT_MBPS:
        raise FactAbsentError("no link of 10 Gb/s or more: the kernel's default maxima suffice")
    ram: int = facts["memory.total_kb"] * 1024
    product = speed * 125_000 * INTRA_SITE_RTT_SECONDS * 2
    wanted = 1 << max(0, int(product) - 1).bit_length()
    ceiling = max(16 * MIB, 1 << ((ram // 100).bit_length() - 1))
    return min(max(wanted, 16 * MIB), 256 * MIB, ceiling)


@needs("sysctl.net.ipv4.tcp_rmem", "derived.tcp_buffer_bytes")
def tcp_rmem(facts: FactsView) -> list[int]:
    """Return the three receive buffer sizes with only the largest raised: every socket costs the middle one."""
    smallest, initial, _ = facts["sysctl.net.ipv4.tcp_rmem"]
    return [smallest, initial, facts["derived.tcp_buffer_bytes"]]


@needs("sysctl.net.ipv4.tcp_wmem", "derived.tcp_buffer_bytes")
def tcp_wmem(facts: FactsView) -> list[int]:
    """Return the three send buffer sizes with only the largest raised: every socket costs the middle one."""
    smallest, initial, _ = facts["sysctl.net.ipv4.tcp_wmem"]
    return [smallest, initial, facts["derived.tcp_buffer_bytes"]]


@needs("gpu.power_management_limit", "gpu.power_management_default_limit", "gpu.names")
def usual_power_limits(facts: FactsView) -> dict[str, int]:
    """Return GPU model → the power limit of most of its GPUs (mW), without models with several default limits."""
    names, defaults = facts["gpu.names"], facts["gpu.power_management_default_limit"]
    kinds = {model: {defaults.get(gpu) for gpu, name in names.items() if name == model} for model in names.values()}
    limits: dict[str, Counter[int]] = {}
    for gpu, limit in facts["gpu.power_management_limit"].items():
        if len(kinds.get(names.get(gpu), ())) == 1:
            limits.setdefault(names[gpu], Counter())[limit] += 1
    return {model: seen.most_common(1)[0][0] for model, seen in limits.items()}


GPUS_OF_A_SERVER = 4


@needs("slurm.present", "kubernetes.present", "bmc.present", "bmc.faults")
def managed(facts: FactsView) -> bool:
    """Return whether a scheduler or a BMC manages the host, as far as known."""
    told = any(map(facts.readable, ("slurm.present", "kubernetes.present", "bmc.present")))
    return told or facts.readable("bmc.faults") is not None


@needs("derived.managed", "gpu.count", "gpu.names", "rdma.ports")
def server(facts: FactsView) -> bool:
    """Return whether the host is a server, whatever cards it has, as far as known."""
    gpus: int = facts.readable("gpu.count") or len(facts.readable("gpu.names", ()))
    rdma = any(not port.get("virtual_function") for port in facts.readable("rdma.ports", {}).values())
    return facts["derived.managed"] or gpus >= GPUS_OF_A_SERVER or rdma


@needs("gpu.count", "gpu.names", "gpu.nvlink_state", "pci.gpus")
def gpus_over_pcie(facts: FactsView) -> bool:
    """Return whether GPUs reach each other over PCIe: there are several, and for one nothing shows NVLinks that are up."""
    gpus: int = facts.readable("gpu.count") or len(facts.readable("gpu.names") or facts.readable("pci.gpus", ()))
    linked = sum(bool(links["active"]) for links in facts.readable("gpu.nvlink_state", {}).values())
    return linked < gpus > 1


SMALLEST_RESERVE_KB = 135_168
"""The value in tuned's hpc-compute profile on every machine."""


@needs("memory.total_kb")
def min_free_kbytes(facts: FactsView) -> int:
    """Return the free memory that the kernel should keep in reserve (KiB).

    A share of 1/2048 of RAM (512 MiB at 1 TiB), at least 132 MiB, at most 1 GiB, and never above 2 % of RAM.
    """
    total: int = facts["memory.total_kb"]
    return min(max(total // 2048, SMALLEST_RESERVE_KB), 1 << 20, total // 50)


@needs("memory.total_kb")
def min_free_kbytes_ceiling(facts: FactsView) -> int:
    """Return the largest harmless reserve (KiB): 5 % of RAM, which is also the kernel's own limit."""
    total: int = facts["memory.total_kb"]
    return total // 20


@needs("memory.total_kb")
def dirty_bytes(facts: FactsView) -> int:
    """Return a limit of unwritten data that no storage of a host needs to be larger: 8 GiB, or an eighth of less memory (bytes)."""
    total: int = facts["memory.total_kb"]
    return min(8 << 30, total * 128)


@needs("cpu.count")
def pid_max(facts: FactsView) -> int:
    """Return the smallest pid_max for this many CPUs: 1024 per CPU, and at least the kernel's 32768."""
    return max(32_768, 1024 * int(facts["cpu.count"]))


@needs("cmdline.running", "cmdline.installed")
def next_arguments(facts: FactsView) -> dict[str, str]:
    """Return the kernel arguments of the next boot: this boot's, unless the boot loader on this root file system has others.

    A node that boots over the network has arguments from elsewhere.
    """
    now: dict[str, str] = facts["cmdline.running"]
    later: dict[str, str] = (facts.readable("cmdline.installed") or {}).get("arguments", now)
    return later if later.get("root") == now.get("root") else now


@needs("services.tuned", "services.tuned_profile")
def tuned_settings(facts: FactsView) -> dict[str, dict[str, str]]:
    """Return what tuned's active profile sets at each boot: plugin → key → text; empty if tuned does not start then."""
    unit = facts.get("services.tuned") or {}
    starts = unit.get("active") == "active" and unit.get("enabled") == "enabled"
    found: dict[str, dict[str, str]] = {}
    for name, section in (facts["services.tuned_profile"]["settings"] if starts else {}).items():
        texts = {key: str(each["value"]).strip("\"'") for key, each in section.items() if key != "type"}
        found.setdefault(section.get("type", {}).get("value", name), {}).update(texts)
    return found


def function(name: str) -> Function:
    """Return the function of `derived.NAME`. Raise KeyError for an unknown derived fact."""
    if not exists(name):
        raise KeyError(f"unknown derived fact {name}")
    found: Function = globals()[name.removeprefix("derived.")]
    return found


def is_derived(name: str) -> bool:
    return name.startswith("derived.")


def exists(name: str) -> bool:
    """Return whether a derived fact of that name exists."""
    return hasattr(globals().get(name.removeprefix("derived.")), "needs")


def raw_needs(name: str) -> set[str]:
    """Return the collected facts behind a fact name: itself, or recursively the inputs of a derived fact."""
    if not is_derived(name):
        return {name}
    return set().union(*(raw_needs(each) for each in function(name).needs))  # type: ignore[attr-defined]


def lookup(host: HostFacts, name: str) -> Fact:
    """Return a fact of a host, collected or derived."""
    if not is_derived(name):
        return host.get(name)
    global _of_last  # noqa: PLW0603
    last, known = _of_last
    if last is not host:
        known = {}
        _of_last = host, known
    if name not in known:
        known[name] = _compute(host, name)
    return known[name]


_of_last: tuple[HostFacts | None, dict[str, Fact]] = None, {}
"""The values computed for the last host, which several checks use."""


def _compute(host: HostFacts, name: str) -> Fact:
    computed = function(name)
    try:
        return Value(computed(FactsView(host, computed.needs, lookup)))  # type: ignore[attr-defined]
    except FactAbsentError as absent:
        return Absent(str(absent))
    except FactUnreadError as unread:
        return Unread(str(unread))

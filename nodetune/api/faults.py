"""The table of faults other than checks: what each means, how bad it is, who acts, and what closes it.

A check and a comparison of a fleet are faults with their own id, severity and remedy: see nodetune/checks. A source that
concludes what neither has is refused by a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nodetune.api.conclusion import HAND, REPAIR, USER, Conclusion
from nodetune.api.device import Device


@dataclass(frozen=True)
class Fault:
    """One kind of fault: `closes` says which examination proves it good; `who` and `severity` are the defaults."""

    id: str
    source: str
    severity: str
    who: str
    title: str
    closes: str
    since: str = "0.2.0"


_AGAIN = "a measurement of the same figure that reaches its target"
_REACH = "a run of `rdma_reach` over the same hosts in which they reach each other"
_SEARCH = "a search in which all its hosts as one reach what is expected"
_WATCH = "a watch in which a job's GPU works"
_JOBS = "a judgement of jobs in which its ranks are as early as others"
_RAS = "an answer of a job on the host in which all ranks take part"

TABLE = (
    Fault("host-not-reached", "reach", "medium", HAND, "A host could not be reached", "any command that reaches it"),
    Fault("figure-below-target", "verify", "high", HAND, "A measured figure is below its target", _AGAIN),
    Fault("data-wrong", "verify", "critical", REPAIR, "Data came back wrong, or was computed wrongly", "the same measurement with right data"),
    Fault("measurement-failed", "verify", "medium", HAND, "A measurement ended with an error", "the same measurement with a figure"),
    Fault("collective-over-wrong-path", "verify", "high", HAND, "NCCL did not use the fastest path that is there", "a collective over that path"),
    Fault("nvls-not-used", "verify", "medium", HAND, "NCCL reduced in the GPUs, not in the switch", "a collective with NVLS"),
    Fault("gpu-throttled", "verify", "high", REPAIR, "A GPU is throttled under load by heat or power", "a load without throttling"),
    Fault("segments-retransmitted", "verify", "low", HAND, "TCP repeated many segments", "a measurement of TCP with fewer"),
    Fault("rdma-port-unreached", "verify", "high", REPAIR, "An RDMA port reaches no other of its fabric", _REACH),
    Fault("rdma-path-broken", "verify", "high", HAND, "RDMA ports of two hosts do not reach each other", _REACH),
    Fault("rdma-fabric-split", "verify", "high", HAND, "Two parts of an RDMA fabric do not reach each other", _REACH),
    Fault("rdma-mtu-unequal", "verify", "medium", HAND, "The MTU of an RDMA port or path is smaller than that of others", _REACH),
    Fault("node-slow", "find-slow", "high", REPAIR, "A node makes every run that it is in slow", _SEARCH),
    Fault("gpu-slow", "find-slow", "high", REPAIR, "A GPU is slower than those of the other nodes", _SEARCH),
    Fault("nic-slow", "find-slow", "high", REPAIR, "A network adapter is slower than those of the other nodes", _SEARCH),
    Fault("rail-slow", "find-slow", "high", REPAIR, "A GPU or its network adapter is slow", _SEARCH),
    Fault("path-slow", "find-slow", "high", REPAIR, "The path between two nodes is slow", _SEARCH),
    Fault("link-slow", "find-slow", "high", REPAIR, "The links between two switches are slow", _SEARCH),
    Fault("uplink-slow", "find-slow", "high", REPAIR, "The uplinks of a switch are slow", _SEARCH),
    Fault("part-hangs", "find-slow", "critical", REPAIR, "Runs with a part hang", _SEARCH),
    Fault("part-fails", "find-slow", "critical", REPAIR, "Runs with a part fail", _SEARCH),
    Fault("part-gives-wrong-data", "find-slow", "critical", REPAIR, "Runs with a part move wrong data", _SEARCH),
    Fault("fleet-slow", "find-slow", "medium", HAND, "All hosts as one are below what is expected", _SEARCH),
    Fault("rank-late", "late-ranks", "medium", HAND, "The other ranks of jobs wait for this rank or host", _JOBS),
    Fault("program-uneven", "late-ranks", "low", USER, "The other ranks of a job wait for the same rank on any host", _JOBS),
    Fault("rank-missing", "ras", "high", HAND, "A rank of a running job gives no data", _RAS),
    Fault("rank-behind", "ras", "high", HAND, "A rank has not launched what the others wait in", _RAS),
    Fault("rank-ahead", "ras", "high", HAND, "A few ranks launched what the others did not", _RAS),
    Fault("rank-error", "ras", "high", HAND, "NCCL reports an error of a rank", _RAS),
    Fault("gpu-waits-for-cpu", "watch", "low", USER, "A job's GPU waits for the CPU", _WATCH),
    Fault("gpu-waits-for-disk", "watch", "low", USER, "A job's GPU waits for the disk", _WATCH),
    Fault("gpu-waits-for-network", "watch", "low", USER, "A job's GPU waits for the network", _WATCH),
    Fault("gpu-waits-for-copies", "watch", "low", USER, "A job's GPU waits for copies from the host's memory", _WATCH),
    Fault("gpu-waits-for-peer", "watch", "low", USER, "A job's GPU waits for another GPU", _WATCH),
    Fault("gpu-held-back-by-power", "watch", "medium", HAND, "A working GPU is held back by its power limit", _WATCH),
    Fault("gpu-held-back-by-heat", "watch", "high", REPAIR, "A working GPU is held back by heat", _WATCH),
    Fault("gpu-hardly-works", "watch", "low", USER, "A job uses few of a GPU's multiprocessors", _WATCH),
    Fault("gpu-paused", "watch", "low", USER, "A job's program pauses by itself", _WATCH),
    Fault("gpu-idle", "watch", "low", USER, "A job has a GPU and does not use it", _WATCH),
    Fault("part-degrading", "trend", "medium", REPAIR, "A part's errors or heat grow far above its past and its peers", "a day without that growth, or its exchange"),
    Fault("node-held-by-guard", "guard", "critical", REPAIR, "The guard's last run on a node found a fault that gates", "a run of the guard that passes"),
    Fault("guard-inconclusive", "guard", "medium", HAND, "The guard's last run on a node could not judge it", "a run of the guard that passes or fails"),
    Fault("part-gone", "readmit", "critical", REPAIR, "A part that the host had is gone", "an inventory with it, or with one in its place"),
    Fault("fault-survives-reboots", "episodes", "high", REPAIR, "Two reboots did not cure a fault: it is hardware", "what closes the fault itself"),
    Fault("host-often-broken", "episodes", "medium", REPAIR, "A host or part has more episodes than its model explains", "90 days at the rate of its model"),
)  # fmt: skip

_BY_ID = {fault.id: fault for fault in TABLE}


def row(fault: str) -> Fault:
    """Return the row of a fault of this table. Raise KeyError."""
    return _BY_ID[fault]


def found(
    fault: str,
    hosts: tuple[str, ...],
    statement: str,
    at: int,
    device: Device | None = None,
    about: str = "",
    **more: Any,
) -> Conclusion:
    """Return a conclusion with the source, the severity and the one who acts that its row has. `more`: its other members."""
    of = row(fault)
    return Conclusion(fault, of.source, hosts, of.severity, statement, at, device, about, **{"who": of.who, **more})


def of(fault: str) -> Fault | None:
    """Return the row of a fault; None for a check or a comparison, and for what no source may conclude."""
    return _BY_ID.get(fault)


def of_source(source: str) -> Iterable[Fault]:
    """Return the faults that a source concludes, without checks and comparisons."""
    return (fault for fault in TABLE if fault.source == source)

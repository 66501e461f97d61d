"""A watched GPU, its processes, and the verdict: frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TENSOR, COMPUTING, MEMORY = "computing-tensor", "computing", "memory-bound"
HOST_COPIES, DISK, NETWORK, CPU, PEER = "host-copies", "disk", "network", "cpu", "peer"
POWER, HEAT, FEW_SMS, PAUSED, IDLE = "power", "heat", "few-sms", "paused", "idle"
FREE, UNKNOWN = "free", "unknown"

LATE = "peer-late"
"""The rule for a GPU whose kernel waits for another GPU."""

TITLES: Mapping[str, str] = {
    TENSOR: "computing (tensor cores)",
    COMPUTING: "computing (no tensor cores)",
    MEMORY: "memory-bound",
    HOST_COPIES: "waiting for host copies",
    DISK: "waiting for the disk",
    NETWORK: "waiting for the network",
    CPU: "waiting for the CPU",
    PEER: "waiting for a peer",
    POWER: "held back by power",
    HEAT: "held back by heat",
    FEW_SMS: "hardly working",
    PAUSED: "pausing by its own program",
    IDLE: "allocated but idle",
    FREE: "free",
    UNKNOWN: "unknown",
}
"""Each verdict and its title."""

WORKING = (TENSOR, COMPUTING, MEMORY)
"""Verdicts of GPUs whose jobs use them."""


def percent(share: float) -> str:
    """Format a share: 0.25 → `25 %`."""
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class GpuUsage:
    """The averages of one GPU (probe/watch_gpu.py); `gpm` is empty where `no_gpm` says why."""

    name: str
    model: str
    gpm: Mapping[str, float]
    no_gpm: str
    counters: Mapping[str, Any]
    throttling: Mapping[str, float]

    def rate(self, kind: str) -> float:
        """Return the rate of a link in its busier direction, in MB/s."""
        return max(self.gpm.get(f"{kind}_rx", 0.0), self.gpm.get(f"{kind}_tx", 0.0))

    def number(self, name: str) -> float:
        """Return an average that is not of GPM; 0 if unknown."""
        return float(self.counters.get(name) or 0.0)


@dataclass(frozen=True)
class Process:
    """One process on a GPU, or one that such a process started (probe/watch_processes.py)."""

    pid: int
    name: str
    user: str
    gpu_pid: int
    job: Mapping[str, str]
    cores: float
    delay: float
    throttled: float
    read: float
    activity: Mapping[str, float]
    nccl: bool
    ended: bool
    gpus: tuple[str, ...]

    def share(self, kind: str) -> float:
        """Return the share of the samples in which it did this: run, sleep, wait, local, driver, network, storage."""
        return sum(share for name, share in self.activity.items() if name.partition(" ")[0] == kind)

    def most(self, kind: str) -> str:
        """Return the detail of this kind that was seen most: an address, or the type of a file system."""
        shares = {name: share for name, share in self.activity.items() if name.partition(" ")[0] == kind}
        return max(shares, key=lambda name: shares[name]).partition(" ")[2] if shares else ""


@dataclass(frozen=True)
class Job:
    """The owner of the processes on a GPU: a Slurm job, a container, or a user."""

    kind: str
    id: str
    user: str

    @property
    def title(self) -> str:
        if self.kind == "user":
            return self.user
        return f"{self.kind} {self.id[:12]}" + (f" ({self.user})" if self.user else "")


@dataclass(frozen=True)
class Diagnosis:
    """The verdict about one GPU: the rule that decided, and its evidence. `late`: the GPUs that it waits for."""

    verdict: str
    rule: str
    evidence: tuple[str, ...] = ()
    late: tuple[str, ...] = ()

    @property
    def wasted(self) -> bool:
        """Whether a job has the GPU and does not use it well."""
        return self.verdict not in (*WORKING, FREE, UNKNOWN)


@dataclass(frozen=True)
class WatchedGpu:
    """One GPU of a host with its job and the verdict."""

    gpu: GpuUsage
    processes: tuple[Process, ...]
    jobs: tuple[Job, ...]
    diagnosis: Diagnosis


@dataclass(frozen=True)
class WatchedHost:
    """A host: `state` is ok or why it was not reached; `message` also says why GPUs could not be read."""

    host: str
    state: str
    message: str = ""
    seconds: float = 0.0
    gpus: tuple[WatchedGpu, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    load: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every GPU was read and judged."""
        diagnosed = all(gpu.diagnosis.verdict != UNKNOWN for gpu in self.gpus)
        return self.state == "ok" and not self.unread and diagnosed

"""From a watch to what it concludes: the GPUs that a job does not use well, and what their jobs wait for. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from nodetune import __version__
from nodetune.api import faults
from nodetune.api.conclusion import MEASURED, USER, Conclusion, Examination, Examined, Judged, Next, joined, unreached
from nodetune.api.device import Device
from nodetune.foundation import text
from nodetune.jobs.watch.model import (
    CPU,
    DISK,
    FEW_SMS,
    HEAT,
    HOST_COPIES,
    IDLE,
    NETWORK,
    PAUSED,
    PEER,
    POWER,
    TITLES,
    UNKNOWN,
    WORKING,
    WatchedGpu,
    WatchedHost,
)

SOURCE = "watch"
FAULTS = {
    CPU: "gpu-waits-for-cpu",
    DISK: "gpu-waits-for-disk",
    NETWORK: "gpu-waits-for-network",
    HOST_COPIES: "gpu-waits-for-copies",
    PEER: "gpu-waits-for-peer",
    POWER: "gpu-held-back-by-power",
    HEAT: "gpu-held-back-by-heat",
    FEW_SMS: "gpu-hardly-works",
    PAUSED: "gpu-paused",
    IDLE: "gpu-idle",
}
"""Verdict → fault. Other verdicts are about GPUs that work, are free or are unknown."""

OF_JOBS = tuple(each.id for each in faults.of_source(SOURCE) if each.who == USER)
"""Faults of jobs: over when the job does otherwise or is gone. Those of GPUs show under a load only."""


def concluded(watched: Iterable[WatchedHost], taken: Mapping[str, float | None], now: int) -> Examined:
    """Return what a watch concludes. `taken`: host → Unix time of its watch (without one: `now`)."""
    return joined(_of_host(host, int(taken.get(host.host) or now)) for host in watched)


def _of_host(host: WatchedHost, at: int) -> Examined:
    reached = unreached([(host.host, host.state, host.message, at)], __version__)
    if host.state != "ok":
        return reached
    conclusions = tuple(conclusion for gpu in host.gpus for conclusion in _conclusions(host, gpu, at))
    examination = Examination(SOURCE, host.host, at, __version__, tuple(_judged(host)), dict(_unjudged(host)))
    return reached + Examined(conclusions, (examination,))


def _conclusions(host: WatchedHost, gpu: WatchedGpu, at: int) -> Iterator[Conclusion]:
    fault = FAULTS.get(gpu.diagnosis.verdict)
    if fault is None:
        return
    name = text.plain(gpu.gpu.name)
    jobs = ", ".join(text.plain(job.title) for job in gpu.jobs)
    yield faults.found(
        fault,
        (host.host,),
        f"{name}: {TITLES[gpu.diagnosis.verdict]}" + (f", {jobs}" if jobs else ""),
        at,
        Device(name, kind="gpu"),
        sure=MEASURED,
        observed=gpu.diagnosis.verdict,
        evidence=tuple(text.plain(line, 400) for line in (*gpu.diagnosis.evidence, *gpu.diagnosis.late)),
        next=Next("watch", (), (host.host,)),
        job=jobs,
    )


def _judged(host: WatchedHost) -> Iterator[Judged]:
    """Yield what was judged: of GPUs that work or wait whether a job uses them, and of those that work what holds them back."""
    known = frozenset(text.plain(gpu.gpu.name) for gpu in host.gpus if gpu.diagnosis.verdict != UNKNOWN)
    loaded = frozenset(
        text.plain(gpu.gpu.name) for gpu in host.gpus if gpu.diagnosis.verdict in (*WORKING, POWER, HEAT)
    )
    for fault in FAULTS.values():
        yield Judged(fault, only=known if fault in OF_JOBS else loaded)


def _unjudged(host: WatchedHost) -> Iterator[tuple[str, str]]:
    reasons = [
        *host.unread.values(),
        *(line for gpu in host.gpus if gpu.diagnosis.verdict == UNKNOWN for line in gpu.diagnosis.evidence),
    ]
    if reasons:
        yield "gpu-idle", text.plain(reasons[0], 200)

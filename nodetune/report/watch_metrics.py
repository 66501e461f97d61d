"""A watch in Prometheus' text format, for node-exporter's textfile collector."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from nodetune.jobs.watch.model import TITLES, WatchedGpu, WatchedHost
from nodetune.report.prometheus import Sample, label, write_samples

HELP = {
    "timestamp_seconds": "Time when this watch ended.",
    "reached": "1 for each watched host, 0 for each unreachable host, with its state.",
    "gpu_verdict": "1 for the verdict about each GPU, 0 for the others.",
    "gpu_job": "1 for each job on each GPU.",
    "gpu_busy_ratio": "Share of the time with a kernel running, of SMs that work, of the tensor cores and of the memory bandwidth.",
    "gpu_memory_used_bytes": "Memory in use on each GPU, on average.",
    "link_bytes_per_second": "Bytes that each network interface and RDMA port received and sent.",
    "disk_bytes_per_second": "Bytes read from each disk and written to it.",
    "disk_busy_ratio": "Share of the time in which each disk had work.",
}
RATIOS = ("graphics", "sm", "tensor", "dram")


def write(watched: Sequence[WatchedHost], stream: TextIO, now: float | None = None) -> None:
    """Write the samples by metric, as the format requires."""
    ended: Sample = ("timestamp_seconds", {}, time.time() if now is None else now)
    write_samples(stream, "nodetune_watch", HELP, [ended, *_samples(watched)])


def _samples(watched: Iterable[WatchedHost]) -> Iterator[Sample]:
    for host in watched:
        name = label(host.host)
        yield "reached", {"host": name, "state": label(host.state)}, host.state == "ok"
        yield from _of_host(host.load, {"host": name})
        for gpu in host.gpus:
            yield from _of_gpu(gpu, {"host": name, "gpu": label(gpu.gpu.name)})


def _of_host(load: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Sample]:
    for kind in ("link", "disk"):
        for device, figures in load.get(kind + "s", {}).items():
            of = {**labels, kind: label(device)}
            for name, figure in figures.items():
                if name == "busy":
                    yield "disk_busy_ratio", of, figure
                else:
                    yield f"{kind}_bytes_per_second", {**of, "way": label(name)}, figure * 1e6


def _of_gpu(gpu: WatchedGpu, labels: Mapping[str, str]) -> Iterator[Sample]:
    for verdict in TITLES:
        yield "gpu_verdict", {**labels, "verdict": verdict}, verdict == gpu.diagnosis.verdict
    for job in gpu.jobs:
        yield "gpu_job", {**labels, "kind": job.kind, "job": label(job.id), "user": label(job.user)}, 1
    for ratio in RATIOS:
        if ratio in gpu.gpu.gpm:
            yield "gpu_busy_ratio", {**labels, "of": ratio}, gpu.gpu.gpm[ratio] / 100
    if "memory_gib" in gpu.gpu.counters:
        yield "gpu_memory_used_bytes", labels, gpu.gpu.number("memory_gib") * (1 << 30)

"""A watch for people at a terminal: jobs first that waste most, each with the verdicts about its GPUs."""

from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.foundation import by_key, text
from nodetune.jobs.watch import document
from nodetune.jobs.watch.model import FREE, TITLES, UNKNOWN, WORKING, WatchedGpu, WatchedHost, percent
from nodetune.report.text import host_names
from nodetune.report.text.lines import Lines, screen, some

INDENT = "  "
DEEP = " " * 6
MAX_JOBS = 40
MAX_LATE = 4
MAX_DEVICES, LEAST_MBPS = 4, 100
FIGURES = (("kernels", "graphics"), ("SMs", "sm"), ("tensor", "tensor"), ("memory", "dram"))
GpuOfHost = tuple[str, WatchedGpu]


def print_watch(stream: TextIO, watched: Sequence[WatchedHost]) -> None:
    """Print the report."""
    out = Lines(screen(stream))
    jobs = document.jobs(watched)
    for use in jobs[:MAX_JOBS]:
        waste = f", {use.wasted} of them not well used" if use.wasted else ""
        out.line((use.job.title, "bold"), f"  {text.count(len(use.gpus), 'GPU')}{waste}")
        _verdicts(out, use.gpus)
        out.line("")
    if len(jobs) > MAX_JOBS:
        out.line(f"… and {len(jobs) - MAX_JOBS} more jobs: --format json lists all")
    _without_job(out, watched)
    _loads(out, watched)
    host_names.unreached(out, [(host.state, host.host, host.message) for host in watched if host.state != "ok"])
    out.line(summary(watched))


def _verdicts(out: Lines, gpus: Iterable[GpuOfHost]) -> None:
    """Print the GPUs by their verdict. The evidence is that of the first GPU."""
    for (verdict, _), same_verdict in by_key(
        ((gpu.diagnosis.verdict, gpu.diagnosis.rule), (host, gpu)) for host, gpu in gpus
    ).items():
        out.line(INDENT, (f"{TITLES[verdict]:27}", _style(verdict)), _where(same_verdict), hang=DEEP)
        first = same_verdict[0][1]
        figures = [f"{title} {first.gpu.gpm[name]:.0f} %" for title, name in FIGURES if name in first.gpu.gpm]
        figures += [
            f"{first.gpu.number(name):.1f} GiB in use" for name in ("memory_gib",) if name in first.gpu.counters
        ]
        evidence = [text.plain(line) for line in first.diagnosis.evidence]
        out.line("; ".join(evidence), indent=DEEP)
        if figures:
            out.line((", ".join(figures), "dim"), indent=DEEP)
        late = list(dict.fromkeys(name for _, gpu in same_verdict for name in gpu.diagnosis.late))
        if late:
            out.line(("late  ", "bold"), some(late, MAX_LATE), indent=DEEP, hang=INDENT)


def _where(gpus: Sequence[GpuOfHost]) -> str:
    """Fold hosts that have the same GPUs: `gpu[001-004] GPU0-7, gpu005 GPU1`."""
    of_host = by_key((host, gpu.gpu.name) for host, gpu in gpus)
    alike = by_key((text.names(names), host) for host, names in of_host.items())
    return ", ".join(f"{host_names.fold(hosts)} {names}" for names, hosts in alike.items())


def _style(verdict: str) -> str:
    return (
        "green" if verdict in WORKING else "dim" if verdict == FREE else "magenta" if verdict == UNKNOWN else "yellow"
    )


def _without_job(out: Lines, watched: Sequence[WatchedHost]) -> None:
    """Print the GPUs that no process has, or whose process is not visible, and those that could not be read."""
    unused = [(host.host, gpu) for host in watched for gpu in host.gpus if not gpu.jobs]
    if unused:
        _verdicts(out, unused)
        out.line("")
    for host in watched:
        for name, why in host.unread.items():
            out.line((f"{text.plain(host.host)} {text.plain(name)}  ", "magenta"), text.plain(why), hang=DEEP)
        if host.state == "ok" and not host.gpus and not host.unread:
            out.line((f"{text.plain(host.host)}  ", "bold"), text.plain(host.message), hang=DEEP)


def _loads(out: Lines, watched: Iterable[WatchedHost]) -> None:
    """Print the network links and disks that moved most, each with its rates."""
    found = [
        (max(rates.values()), host.host, name, rates, figures.get("busy"))
        for host in watched
        for kind in ("links", "disks")
        for name, figures in host.load.get(kind, {}).items()
        if (rates := {way: rate for way, rate in figures.items() if way != "busy"})
    ]
    most = sorted((each for each in found if each[0] >= LEAST_MBPS), key=lambda each: (-each[0], each[1], each[2]))
    for _, host, name, rates, busy in most[:MAX_DEVICES]:
        told = [f"{way} {rate / 1e3:.2f} GB/s" for way, rate in rates.items()]
        told += [f"busy {percent(busy)}"] if busy is not None else []
        out.line((f"{text.plain(host)} {text.plain(name)}  ", "bold"), ", ".join(map(text.plain, told)), hang=DEEP)
    if most:
        out.line("")


def summary(watched: Sequence[WatchedHost]) -> str:
    """Return the number of hosts and GPUs, and of the GPUs by verdict."""
    counted = document.summary(watched)
    verdicts = ", ".join(f"{number} {TITLES[name]}" for name, number in counted["verdicts"].items() if number)
    gpus = text.count(counted["gpus"], "GPU")
    hosts = text.count(counted["hosts"], "host")
    return f"{gpus} on {hosts}: {verdicts or 'nothing to watch'}"

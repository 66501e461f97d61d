"""Late ranks of jobs, and missing ranks of a running one, for people at a terminal."""

import shlex
from collections.abc import Sequence
from typing import TextIO

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks import labels
from nodetune.jobs.late_ranks.model import HOST, OPEN, PROGRAM, LateCause, SlowRanks
from nodetune.jobs.late_ranks.ras_status import AHEAD, BEHIND, FAILED, MISSING, RasStatus
from nodetune.report.text.lines import Lines, screen

GUTTER = " " * 13
MAX_PARTS, MAX_FINDINGS = 4, 40
LABELS = {HOST: ("slow", "bold red"), OPEN: ("late", "yellow"), PROGRAM: ("program", "dim")}
STYLES = {MISSING: "bold red", BEHIND: "bold red", FAILED: "bold red", AHEAD: "yellow"}


def print_slow(stream: TextIO, result: SlowRanks | RasStatus) -> None:
    """Print the whole report."""
    out = Lines(screen(stream))
    if isinstance(result, RasStatus):
        _status(out, result)
    else:
        _ranks(out, result)


def _ranks(out: Lines, result: SlowRanks) -> None:
    for cause in result.causes:
        _late_cause(out, cause)
    for job in result.jobs:
        for reason in job.undecided:
            _line(out, "undecided", "yellow", f"job {job.name}: {reason}")
    for reason, jobs in by_key((why, job.name) for job in result.jobs for why in job.not_compared).items():
        _line(out, "not judged", "magenta", f"{_jobs(jobs)}: {reason}")
    for note in result.notes:
        _line(out, "note", "dim", note)
    _line(out, "jobs", "bold", summary(result))


def _late_cause(out: Lines, cause: LateCause) -> None:
    label, style = LABELS[cause.cause]
    first = cause.parts[0]
    name = labels.part(first) if cause.cause != PROGRAM else f"rank {text.names([str(rank) for rank in first.ranks])}"
    _line(out, label, style, f"{name}: {cause.why}")
    for part in cause.parts[:MAX_PARTS]:
        where = f"{part.host}, " if cause.cause == PROGRAM else ""
        _line(out, "", "", where + labels.evidence(part))
    if len(cause.parts) > MAX_PARTS:
        _line(out, "", "", f"and {len(cause.parts) - MAX_PARTS} more: --format json lists all")
    if cause.cause == HOST:
        _line(out, "", "green", f"nodetune audit -i {shlex.quote(first.host)} -b")


def _jobs(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"job {', '.join(names[:4])}{more}"


def summary(result: SlowRanks | RasStatus) -> str:
    """Return the last line of the report."""
    if isinstance(result, RasStatus):
        return (
            result.problem
            or ("not judged: this NCCL answers in text only" if result.text else "")
            or f"{text.count(len(result.findings), 'finding')} in {text.count(result.communicators, 'communicator')}"
        )
    compared = [job for job in result.jobs if job.compared]
    hosts = {host for job in compared for host in job.hosts}
    words = f"{len(compared)} of {text.count(len(result.jobs), 'job')} judged"
    if not compared:
        return words
    words += f", {text.count(len(hosts), 'host')}"
    late = sum(cause.cause != PROGRAM for cause in result.causes)
    if late:
        return f"{words}: {text.count(late, 'late part')}"
    is_whole = not any(job.not_compared or job.undecided for job in result.jobs)
    return f"{words}: {'no rank is late for its host or GPU' if is_whole else 'no rank is named'}"


def _status(out: Lines, result: RasStatus) -> None:
    if result.problem:
        _line(out, "no answer", "magenta", f"{result.address}: {result.problem}")
        _line(
            out,
            "",
            "",
            "RAS needs NCCL 2.24 and NCCL_RAS_ENABLE not 0; it listens on localhost of each node of the job:",
        )
        _line(out, "", "green", "ssh -NL 28028:localhost:28028 NODE   then: nodetune slow --ras localhost")
        _line(out, "", "", "or on another address and port, where the job has NCCL_RAS_ADDR")
        return
    if result.text:
        _line(out, "not judged", "magenta", "this NCCL answers in text only (before 2.28.7). It says:")
        for line in result.text.splitlines():
            out.line((text.plain(line, 2000), ""))
        return
    for finding in result.findings[:MAX_FINDINGS]:
        _line(out, finding.kind, STYLES[finding.kind], labels.finding(finding))
    if len(result.findings) > MAX_FINDINGS:
        _line(out, "", "", f"and {len(result.findings) - MAX_FINDINGS} more: --format json lists all")
    for note in result.notes:
        _line(out, "note", "dim", note)
    if not result.findings:
        what = f"all ranks of {text.count(result.communicators, 'communicator')} answer, and none is behind the others"
        _line(
            out,
            "nothing",
            "green",
            f"is missing: {what}" if result.communicators else "is missing: the job has no communicator yet",
        )


def _line(out: Lines, label: str, style: str, words: str) -> None:
    out.line((f"{label:<12} ", style), text.plain(words, 2000), hang=GUTTER)

"""Late ranks of jobs, and missing ranks of a running one, for people at a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TextIO

from nodetune.foundation import by_key, text
from nodetune.jobs.late_ranks import labels
from nodetune.jobs.late_ranks.model import HOST, OPEN, PROGRAM, Conclusion, SlowRanks
from nodetune.jobs.late_ranks.ras_judge import AHEAD, BEHIND, FAILED, MISSING, RasStatus
from nodetune.report.text.lines import Lines, screen

GUTTER = " " * 13
MAX_PARTS, MAX_FINDINGS = 4, 40
LABELS = {HOST: ("slow", "bold red"), OPEN: ("late", "yellow"), PROGRAM: ("program", "dim")}
STYLES = {MISSING: "bold red", BEHIND: "bold red", FAILED: "bold red", AHEAD: "yellow"}


def print_slow(stream: TextIO, found: SlowRanks | RasStatus) -> None:
    """Print the whole report."""
    out = Lines(screen(stream))
    if isinstance(found, RasStatus):
        _status(out, found)
    else:
        _ranks(out, found)


def _ranks(out: Lines, found: SlowRanks) -> None:
    for each in found.conclusions:
        _conclusion(out, each)
    for job in found.jobs:
        for told in job.undecided:
            _line(out, "undecided", "yellow", f"job {job.name}: {told}")
    for told, jobs in by_key((told, job.name) for job in found.jobs for told in job.unjudged).items():
        _line(out, "not judged", "magenta", f"{_jobs(jobs)}: {told}")
    for note in found.notes:
        _line(out, "note", "dim", note)
    _line(out, "jobs", "bold", summary(found))


def _conclusion(out: Lines, each: Conclusion) -> None:
    label, style = LABELS[each.cause]
    first = each.parts[0]
    name = labels.part(first) if each.cause != PROGRAM else f"rank {text.names([str(rank) for rank in first.ranks])}"
    _line(out, label, style, f"{name}: {each.why}")
    for part in each.parts[:MAX_PARTS]:
        where = f"{part.host}, " if each.cause == PROGRAM else ""
        _line(out, "", "", where + labels.evidence(part))
    if len(each.parts) > MAX_PARTS:
        _line(out, "", "", f"and {len(each.parts) - MAX_PARTS} more: --format json lists all")
    if each.cause == HOST:
        _line(out, "", "green", f"nodetune audit -i {shlex.quote(first.host)} -b")


def _jobs(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"job {', '.join(names[:4])}{more}"


def summary(found: SlowRanks | RasStatus) -> str:
    """Return the last line of the report."""
    if isinstance(found, RasStatus):
        return (
            found.problem
            or ("not judged: this NCCL answers in text only" if found.text else "")
            or f"{text.count(len(found.findings), 'finding')} in {text.count(found.communicators, 'communicator')}"
        )
    judged = [each for each in found.jobs if each.judged]
    hosts = {host for each in judged for host in each.hosts}
    told = f"{len(judged)} of {text.count(len(found.jobs), 'job')} judged"
    if not judged:
        return told
    told += f", {text.count(len(hosts), 'host')}"
    late = sum(each.cause != PROGRAM for each in found.conclusions)
    if late:
        return f"{told}: {text.count(late, 'late part')}"
    is_whole = not any(each.unjudged or each.undecided for each in found.jobs)
    return f"{told}: {'no rank is late for its host or GPU' if is_whole else 'no rank is named'}"


def _status(out: Lines, found: RasStatus) -> None:
    if found.problem:
        _line(out, "no answer", "magenta", f"{found.address}: {found.problem}")
        _line(
            out,
            "",
            "",
            "RAS needs NCCL 2.24 and NCCL_RAS_ENABLE not 0; it listens on localhost of each node of the job:",
        )
        _line(out, "", "green", "ssh -NL 28028:localhost:28028 NODE   then: nodetune slow --ras localhost")
        _line(out, "", "", "or on another address and port, where the job has NCCL_RAS_ADDR")
        return
    if found.text:
        _line(out, "not judged", "magenta", "this NCCL answers in text only (before 2.28.7). It says:")
        for line in found.text.splitlines():
            out.line((text.plain(line, 2000), ""))
        return
    for each in found.findings[:MAX_FINDINGS]:
        _line(out, each.kind, STYLES[each.kind], labels.finding(each))
    if len(found.findings) > MAX_FINDINGS:
        _line(out, "", "", f"and {len(found.findings) - MAX_FINDINGS} more: --format json lists all")
    for note in found.notes:
        _line(out, "note", "dim", note)
    if not found.findings:
        what = f"all ranks of {text.count(found.communicators, 'communicator')} answer, and none is behind the others"
        _line(
            out,
            "nothing",
            "green",
            f"is missing: {what}" if found.communicators else "is missing: the job has no communicator yet",
        )


def _line(out: Lines, label: str, style: str, told: str) -> None:
    out.line((f"{label:<12} ", style), text.plain(told, 2000), hang=GUTTER)

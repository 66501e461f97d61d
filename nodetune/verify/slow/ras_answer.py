"""Read the answer of NCCL's RAS service: JSON (2.28.7 and newer), or the text of older ones. Pure.

The text names only ranks that differ from most of the others, and counts where they differ: it does not show that counts grow
as long as all ranks have the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.verify.slow.model import RankOfJob

MOST_RANKS = 1_000_000
BIGGEST = 1 << 63
ERRORS = {
    1: "unhandled CUDA error",
    2: "system error",
    3: "internal error",
    4: "invalid argument",
    5: "invalid usage",
    6: "remote process error",
}
"""ncclResult_t. 0 is success, 7 in progress."""

HEADING = re.compile(r"#\d+-\d+ \(([0-9a-f]{1,16})\) (INCOMPLETE|ERROR|MISMATCH)")
RANK = re.compile(
    r"Rank (\d{1,9})(?: (?:has launched up to operation (\d{1,18})|has not launched any operations|has status (\w+)"
    r"|reported ([\w ]{1,60})))? -- (?:GPU (\d+)[^-]{0,20} managed by process (\d{1,10}) on node (\S{1,64})|\[)"
)
COUNTS = re.compile(r"Communicator ranks have different (\w+) operation counts")
GROUP = re.compile(r"(\d{1,9}) ranks have (?:launched up to operation (\d{1,18})|not launched any operations)")
REPORTED = re.compile(r"\d{1,9} ranks reported ([\w ]{1,60})")
MISSING = re.compile(r"The missing ranks?: ([\d,]{1,2000})")
PROCESS = re.compile(r"Process (\d{1,10}) on node (\S{1,64}) managing GPUs? (\S{1,64})")
NO_COMMA = re.compile(r'("nvml_dev": \d+)(\s+"status":)')
"""NCCL 2.28.9 leaves out the comma between them for missing ranks, and no JSON reader takes its answer."""

NO_DATA, DEAD = "no data", "dead: unreachable for a minute"


class UnreadableError(Exception):
    """The answer is neither."""


@dataclass(frozen=True)
class CommunicatorStatus:
    """A communicator as RAS sees it. In text, `highest` has the counts of groups whose ranks are not all named."""

    id: str
    size: int
    ranks: tuple[RankOfJob, ...]
    highest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """An answer. `lost`: processes without a communicator that RAS cannot reach; `timeouts`: of its own network."""

    version: str
    is_json: bool
    communicators: tuple[CommunicatorStatus, ...]
    lost: tuple[RankOfJob, ...] = ()
    timeouts: int = 0


def read(answer: str) -> Answer:
    """Read either form. Raise UnreadableError."""
    if answer.lstrip().startswith("{"):
        return _json(answer)
    if "Job summary" not in answer:
        raise UnreadableError
    return _text(answer)


def _json(answer: str) -> Answer:
    try:
        data = json.loads(NO_COMMA.sub(r"\1,\2", answer))
    except (ValueError, RecursionError):
        raise UnreadableError from None
    if not isinstance(data, dict) or not isinstance(data.get("communicators"), list):
        raise UnreadableError
    left = [MOST_RANKS]
    found = [each for one in data["communicators"] if (each := _communicator(one, left))]
    ras = data.get("ras")
    timeouts = _whole(ras.get("timeouts_count")) if isinstance(ras, dict) else 0
    return Answer(str(data.get("nccl_version", ""))[:40], True, tuple(found), (), timeouts)


def _communicator(data: Any, left: list[int]) -> CommunicatorStatus | None:
    if not isinstance(data, dict) or not isinstance(data.get("hash"), str):
        return None
    ranks = [_rank(each, "") for each in _list(data, "ranks")]
    missing = [_rank(each, _lost(each)) for each in _list(data, "missing_ranks")]
    left[0] -= len(ranks) + len(missing)
    if left[0] < 0:
        raise UnreadableError
    name = f"{data['hash']} {data.get('secondary_hash', '')}".strip()[:80]
    return CommunicatorStatus(name, _whole(data.get("size")), tuple(each for each in (*ranks, *missing) if each))


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    return found if isinstance(found, list) else []


def _rank(data: Any, lost: str) -> RankOfJob | None:
    if not isinstance(data, dict):
        return None
    counts = data.get("collective_counts")
    seen = {str(name)[:40]: _whole(count) for name, count in counts.items()} if isinstance(counts, dict) else {}
    gpu = data.get("nvml_dev", data.get("cuda_dev", ""))
    return RankOfJob(
        _whole(data.get("rank")),
        str(data.get("host", ""))[:64],
        str(gpu)[:16],
        _whole(data.get("pid")),
        seen,
        lost,
        _errors(data),
    )


def _errors(data: Mapping[str, Any]) -> tuple[str, ...]:
    status = data.get("status")
    if not isinstance(status, dict):
        return ()
    found = [ERRORS.get(_whole(status.get(name)), "") for name in ("init_state", "async_error")]
    found += ["aborted"] if status.get("abort_flag") is True else []
    return tuple(dict.fromkeys(each for each in found if each))


def _lost(data: Any) -> str:
    status = data.get("status") if isinstance(data, dict) else None
    if isinstance(status, dict) and status.get("considered_dead") is True:
        return DEAD
    if isinstance(status, dict) and status.get("unresponsive") is True:
        return "does not answer"
    return "has left the communicator, or not joined it"


def _whole(data: Any) -> int:
    return data if type(data) is int and 0 <= data < BIGGEST else 0


def _text(answer: str) -> Answer:
    ranks: dict[str, dict[int, RankOfJob]] = {}
    highest: dict[str, dict[str, int]] = {}
    lost: list[RankOfJob] = []
    for communicator, section, kind, value, line in _sections(answer):
        if found := PROCESS.match(line):
            lost.append(RankOfJob(-1, found[2], found[3], int(found[1]), {}, DEAD if section == "DEAD" else NO_DATA))
        if not communicator:
            continue
        of = ranks.setdefault(communicator, {})
        if found := MISSING.match(line):
            for number in found[1].split(","):
                if number:
                    of[int(number)] = RankOfJob(int(number), "", "", 0, {}, NO_DATA)
        if kind and (group := GROUP.match(line)):
            counts = highest.setdefault(communicator, {})
            counts[kind] = max(counts.get(kind, 0), int(group[2] or 0))
        if found := RANK.match(line):
            _take(of, found, section, kind, value)
            if kind:
                counts = highest.setdefault(communicator, {})
                counts[kind] = max(counts.get(kind, 0), int(found[2] or 0))
    statuses = [CommunicatorStatus(name, 0, tuple(of.values()), highest.get(name, {})) for name, of in ranks.items()]
    version = re.match(r"\s*NCCL version (\S{1,40})", answer)
    timeouts = re.search(r"Encountered (\d{1,9}) communication timeout", answer)
    return Answer(
        version[1] if version else "", False, tuple(statuses), tuple(lost), int(timeouts[1]) if timeouts else 0
    )


def _sections(answer: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (communicator, section, collective, value of the group, line) of the lines below Errors and Warnings."""
    communicator = section = kind = value = ""
    for line in map(str.strip, answer.splitlines()):
        if heading := HEADING.match(line):
            communicator, section, kind, value = heading[1], heading[2], "", ""
        elif line in ("INCOMPLETE", "DEAD", "TIMEOUT"):
            communicator, section, kind, value = "", line, "", ""
        elif counts := COUNTS.match(line):
            kind, value = counts[1], ""
        elif line.startswith("Communicator ranks have different status"):
            kind = value = ""
        elif group := GROUP.match(line) or REPORTED.match(line):
            value = (group[2] or "0") if group.re is GROUP else group[1]
        yield communicator, section, kind, value, line


def _take(of: dict[int, RankOfJob], found: re.Match[str], section: str, kind: str, value: str) -> None:
    """Add what a line says of a rank."""
    number = int(found[1])
    known = of.get(number, RankOfJob(number, found[7] or "", found[5] or "", int(found[6] or 0)))
    counts, lost, errors = dict(known.counts), known.lost, known.errors
    if section == "INCOMPLETE":
        lost = NO_DATA
    elif section == "ERROR":
        errors = (*errors, (found[4] or value).lower())
    elif kind:
        single = found[2] or ("0" if "has not launched" in found[0] else "")
        counts[kind] = int(single or value or 0)
    of[number] = RankOfJob(number, known.host, known.gpu, known.pid, counts, lost, errors)

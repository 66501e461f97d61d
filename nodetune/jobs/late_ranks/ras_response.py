"""Read the answer of NCCL's RAS service as JSON (2.28.7 and newer). Pure.

Older ones answer in text for people, which is shown as it is: it names few ranks, and leaves out others without saying so.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.jobs.late_ranks.model import RasRank

MAX_RANKS = 1_000_000
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

STARTING = 3
"""A communicator that is made from another has this state until it is ready: init.cc sets ncclInternalError first."""

NO_COMMA = re.compile(r'("nvml_dev": \d+)(\s+"status":)')
"""NCCL 2.28.9 leaves out the comma between them for missing ranks, and no JSON reader takes its answer."""

NO_ANSWER, DEAD, LEFT = (
    "does not answer",
    "dead: unreachable for a minute",
    "has left the communicator, or not joined it",
)


class UnreadableError(Exception):
    """The answer is no such JSON."""


@dataclass(frozen=True)
class CommunicatorStatus:
    """A communicator as RAS sees it."""

    id: str
    size: int
    ranks: tuple[RasRank, ...]
    starting: int = 0
    """Ranks that are not ready yet."""


@dataclass(frozen=True)
class RasResponse:
    """An answer. `timeouts`: of the network between the job's processes."""

    version: str
    communicators: tuple[CommunicatorStatus, ...]
    timeouts: int = 0


def is_text(response: str) -> bool:
    """Return whether this is the answer of a NCCL without JSON."""
    return "Job summary" in response and not response.lstrip().startswith("{")


def read(response: str) -> RasResponse:
    """Read the answer. Raise UnreadableError."""
    try:
        data = json.loads(NO_COMMA.sub(r"\1,\2", response))
    except (ValueError, RecursionError):
        raise UnreadableError from None
    if not isinstance(data, dict) or not isinstance(data.get("communicators"), list):
        raise UnreadableError
    remaining = [MAX_RANKS]
    communicators = [communicator for one in data["communicators"] if (communicator := _communicator(one, remaining))]
    ras = data.get("ras")
    timeouts = _whole(ras.get("timeouts_count")) if isinstance(ras, dict) else 0
    return RasResponse(str(data.get("nccl_version", ""))[:40], tuple(communicators), timeouts)


def _communicator(data: Any, remaining: list[int]) -> CommunicatorStatus | None:
    if not isinstance(data, dict) or not isinstance(data.get("hash"), str):
        return None
    ranks = [_rank(rank, "") for rank in _list(data, "ranks")]
    missing = [_rank(rank, _lost(rank)) for rank in _list(data, "missing_ranks")]
    remaining[0] -= len(ranks) + len(missing)
    if remaining[0] < 0:
        raise UnreadableError
    name = f"{data['hash']} {data.get('secondary_hash', '')}".strip()[:80]
    starting = sum(_is_starting(rank) for rank in _list(data, "ranks"))
    return CommunicatorStatus(
        name, _whole(data.get("size")), tuple(rank for rank in (*ranks, *missing) if rank), starting
    )


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    items = data.get(name)
    return items if isinstance(items, list) else []


def _rank(data: Any, lost: str) -> RasRank | None:
    if not isinstance(data, dict):
        return None
    counts = data.get("collective_counts")
    seen = {str(name)[:40]: _whole(count) for name, count in counts.items()} if isinstance(counts, dict) else {}
    gpu = data.get("nvml_dev", data.get("cuda_dev", ""))
    return RasRank(
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
    states = [status.get(name) for name in ("init_state", "async_error")]
    errors = [ERRORS.get(_whole(error), "") for error in states] if not _is_starting(data) else []
    errors += ["aborted"] if status.get("abort_flag") is True else []
    return tuple(dict.fromkeys(error for error in errors if error))


def _is_starting(data: Any) -> bool:
    status = data.get("status") if isinstance(data, dict) else None
    return isinstance(status, dict) and status.get("init_state") == STARTING and status.get("async_error") == 0


def _lost(data: Any) -> str:
    status = data.get("status") if isinstance(data, dict) else None
    if isinstance(status, dict) and status.get("considered_dead") is True:
        return DEAD
    if isinstance(status, dict) and status.get("unresponsive") is True:
        return NO_ANSWER
    return LEFT


def _whole(data: Any) -> int:
    return data if type(data) is int and 0 <= data < BIGGEST else 0

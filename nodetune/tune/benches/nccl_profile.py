"""Find the mix of a job: its collectives and sizes, weighted by their time, in what NCCL wrote for it.

- The output of NCCL's inspector (plugins/profiler/inspector), one JSON object on each line: `coll_perf` with `coll`,
  `coll_msg_size_bytes` and `coll_exec_time_us` (format v4.0, NCCL 2.28 to 2.30.7). Its Prometheus format has ranges instead of
  sizes and is not supported.
- NCCL's debug log (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL): a line for each call, with its count, type and ranks. It has no
  times: a call counts as LAUNCH µs and its bytes.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune.foundation import UserError

NAMES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AlltoAll": "alltoall",
}
LOGGED = re.compile(
    r"NCCL INFO (AllReduce|AllGather|ReduceScatter|AlltoAll): opCount .* count (\d{1,15}) datatype (\d{1,2}) .*\[nranks=(\d{1,7})\]"
)
"""A line of the debug log, NCCL 2.4 to 2.30.7 (src/enqueue.cc). The count is that of a rank's share, but for an all-reduce."""

WIDTHS = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""Bytes of ncclDataType_t."""

LAUNCH, BYTES_A_MICROSECOND = 20.0, 100e3
"""The time of a call in a log that has none: enough to weigh sizes, which differ by factors of thousands."""

EXPECTED = "give JSON of NCCL's inspector, or a log of NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL"
MAX_SIZES = 4
MIN_SHARE = 0.05
"""Fraction of the time: smaller shares are ignored."""

MAX_LINES = 2_000_000
LARGEST = 1 << 36
MIN_ROUNDS = 4
"""Bytes."""


@dataclass(frozen=True)
class CollectiveProfile:
    """The time of a job in collectives. `share`: the part of the time with these sizes and operations.

    `weights`: of (collective, size), fractions of that time.
    """

    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    share: float
    weights: Mapping[tuple[str, int], float]


def read(path: Path) -> CollectiveProfile:
    """Read such a file or a folder of them. Raise UserError if nothing in it can be used."""
    files = sorted(path.glob("*.log*")) + sorted(path.glob("*.json*")) if path.is_dir() else [path]
    spent: dict[tuple[str, int], float] = {}
    for each in files:
        for name, size, seconds in _calls(each):
            key = name, _power(size)
            spent[key] = spent.get(key, 0.0) + seconds
    if not spent:
        raise UserError(f"{path}: no all-reduce, all-gather, reduce-scatter or alltoall in it: {EXPECTED}")
    return _chosen(spent)


def _calls(path: Path) -> Iterator[tuple[str, int, float]]:
    with path.open("r", encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines):
            if number >= MAX_LINES:
                return
            found = _call(line) if line.lstrip().startswith("{") else _logged(line)
            if found:
                yield found


def _call(line: str) -> tuple[str, int, float] | None:
    """Return (collective, bytes, µs), or None for anything else: a file that is still written ends within a line."""
    try:
        given: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    call = given.get("coll_perf") if isinstance(given, dict) else None
    if not isinstance(call, dict) or call.get("coll") not in NAMES:
        return None
    size: Any = call.get("coll_msg_size_bytes")
    time: Any = call.get("coll_exec_time_us")
    sound = type(size) is int and MIN_ROUNDS <= size <= LARGEST and type(time) in (int, float) and 0 < time < 1e12
    return (NAMES[call["coll"]], size, float(time)) if sound else None


def _logged(line: str) -> tuple[str, int, float] | None:
    """Return (collective, bytes, µs) of a line of the debug log, or None."""
    found = LOGGED.search(line)
    if not found or int(found[3]) >= len(WIDTHS):
        return None
    ranks = 1 if found[1] == "AllReduce" else int(found[4])
    size = int(found[2]) * WIDTHS[int(found[3])] * ranks
    return (NAMES[found[1]], size, LAUNCH + size / BYTES_A_MICROSECOND) if MIN_ROUNDS <= size <= LARGEST else None


def _power(size: int) -> int:
    """Return the nearest power of two, on a logarithmic scale."""
    return 1 << round(math.log2(size))


def _chosen(spent: dict[tuple[str, int], float]) -> CollectiveProfile:
    whole = sum(spent.values())
    ranked = sorted(spent.items(), key=lambda item: (-item[1], item[0]))
    kept = [key for key, time in ranked if time >= MIN_SHARE * whole] or [ranked[0][0]]
    sizes = list(dict.fromkeys(size for _, size in kept))[:MAX_SIZES]
    names = list(dict.fromkeys(name for name, size in kept if size in sizes))
    weights = {(name, size): time / whole for (name, size), time in spent.items() if name in names and size in sizes}
    return CollectiveProfile(tuple(names), tuple(sorted(sizes)), round(sum(weights.values()), 3), weights)

"""How a late part and a missing rank are called in reports."""

from __future__ import annotations

from collections.abc import Sequence

from nodetune.foundation import text
from nodetune.jobs.late_ranks.model import LatePart, RankOfJob
from nodetune.jobs.late_ranks.ras_judge import RasFinding

MAX_RANKS = 16


def part(each: LatePart) -> str:
    """Name a part: `gpu003` with all its ranks, or a rank there."""
    if each.is_host:
        return f"{each.host}, {len(each.ranks)} of its {each.of} ranks"
    return f"{each.host}, local rank {each.local[0]} of {each.of}"


def evidence(each: LatePart) -> str:
    """Say how late it is, and in which collectives."""
    seen, kind = each.seen, each.seen.kind
    ranks = text.names([str(rank) for rank in each.ranks])
    return (
        f"job {each.job}, rank {ranks} of {each.world}: the middle rank waits {_span(seen.wait)} for it in the median, "
        f"{100 * seen.share:.2g} % of the time from one {kind.collective} of {text.size(kind.size)} to the next; "
        f"the last in {100 * seen.last:.0f} % of {seen.calls}"
    )


def finding(each: RasFinding) -> str:
    """Say which ranks of a running job are concerned, and why."""
    of = f" of {each.size}" if each.size else ""
    return f"communicator {each.communicator.split()[0]}: {ranks(each.ranks, of)}: {each.why}"


def ranks(found: Sequence[RankOfJob], of: str = "") -> str:
    """Name ranks with host, GPU and process."""
    named = ", ".join(_rank(each, of) for each in found[:MAX_RANKS])
    return named + (f" and {len(found) - MAX_RANKS} more" if len(found) > MAX_RANKS else "")


def _rank(each: RankOfJob, of: str) -> str:
    name = f"rank {each.rank}{of}"
    where = [
        each.host,
        f"GPU {each.gpu}" if each.gpu else "",
        f"process {each.pid}" if each.pid else "",
    ]
    known = " ".join(part for part in where if part)
    return f"{name} ({known})" if known else name


def _span(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.0f} µs"

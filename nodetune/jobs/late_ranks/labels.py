"""How a late part and a missing rank are called in reports."""

from collections.abc import Sequence

from nodetune.foundation import text
from nodetune.jobs.late_ranks.model import LatePart, RasRank
from nodetune.jobs.late_ranks.ras_status import RasFinding

MAX_RANKS = 16


def part(late_part: LatePart) -> str:
    """Name a part: `gpu003` with all its ranks, or a rank there."""
    if late_part.is_host:
        return f"{late_part.host}, {len(late_part.ranks)} of its {late_part.of} ranks"
    return f"{late_part.host}, local rank {late_part.local[0]} of {late_part.of}"


def evidence(late_part: LatePart) -> str:
    """Say how late it is, and in which collectives."""
    lateness, kind = late_part.lateness, late_part.lateness.kind
    ranks = text.names([str(rank) for rank in late_part.ranks])
    return (
        f"job {late_part.job}, rank {ranks} of {late_part.world}: the middle rank waits {_span(lateness.wait)} for it in the median, "
        f"{100 * lateness.share:.2g} % of the time from one {kind.collective} of {text.size(kind.size)} to the next; "
        f"the last in {100 * lateness.last:.0f} % of {lateness.calls}"
    )


def finding(ras_finding: RasFinding) -> str:
    """Say which ranks of a running job are concerned, and why."""
    of = f" of {ras_finding.size}" if ras_finding.size else ""
    return f"communicator {ras_finding.communicator.split()[0]}: {ranks(ras_finding.ranks, of)}: {ras_finding.why}"


def ranks(ras_ranks: Sequence[RasRank], of: str = "") -> str:
    """Name ranks with host, GPU and process."""
    named = ", ".join(_rank(rank, of) for rank in ras_ranks[:MAX_RANKS])
    return named + (f" and {len(ras_ranks) - MAX_RANKS} more" if len(ras_ranks) > MAX_RANKS else "")


def _rank(rank: RasRank, of: str) -> str:
    name = f"rank {rank.rank}{of}"
    where = [
        rank.host,
        f"GPU {rank.gpu}" if rank.gpu else "",
        f"process {rank.pid}" if rank.pid else "",
    ]
    known = " ".join(part for part in where if part)
    return f"{name} ({known})" if known else name


def _span(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 1000 else f"{microseconds:.0f} µs"

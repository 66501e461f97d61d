"""What a comparison says about one host, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodetune import show
from nodetune.fleet.agreement import FEWEST, Common, Odd, Pool
from nodetune.fleet.apart import Bounds
from nodetune.fleet.comparisons import Comparison
from nodetune.fleet.found import FleetFinding

MOST_VALUES = 4
LONGEST = 4000


def finding(comparison: Comparison, status: str, group: str, **more: Any) -> FleetFinding:
    """A finding of a comparison; its texts hold words of hosts and are bounded."""
    observed, wanted, reason = (show.plain(more.pop(name, ""), LONGEST) for name in ("observed", "wanted", "reason"))
    words = (comparison.title, observed, wanted, reason)
    manual = comparison.next if status == "fail" else ""
    return FleetFinding(comparison.id, status, comparison.severity, *words, manual=manual, group=group, **more)


def skipped(comparison: Comparison, group: str, reason: str) -> FleetFinding:
    return finding(comparison, "skip", group, reason=reason)


def too_few(comparison: Comparison, group: str, hosts: int) -> FleetFinding:
    """A group in which nobody can tell who is odd."""
    told = f"{hosts} host{'' if hosts == 1 else 's'}"
    return skipped(comparison, group, f"{told} ({group}): at least {FEWEST} are needed to tell who is odd")


def odd(
    comparison: Comparison, group: str, found: Odd, pools: Mapping[Pool, Common], compared: int, reference: str
) -> FleetFinding:
    """A host that has something else than most, or than the reference."""
    worst = min((pools[pool] for pool in found.pools), key=lambda pool: pool.hosts[pool.wanted or ""])
    agree = worst.hosts[worst.wanted or ""]
    reason = f"as {reference} has it" if reference else f"as on {agree} of {worst.having} hosts ({group})"
    return finding(
        comparison,
        "fail",
        group,
        observed=found.observed(),
        wanted=found.expected(),
        reason=reason,
        subjects=_subjects(found),
        compared=compared,
        agree=agree,
    )


def undecided(
    comparison: Comparison, group: str, found: Odd, pools: Mapping[Pool, Common], compared: int
) -> FleetFinding:
    """A host of a group that does not agree on anything: nobody is called odd."""
    spread = next(pools[pool] for pool in found.pools)
    values = spread.hosts.most_common()
    told = ", ".join(f"{count} have {text}" for text, count in values[:MOST_VALUES])
    rest = f", and {len(values) - MOST_VALUES} other values" if len(values) > MOST_VALUES else ""
    reason = f"no majority among {spread.having} hosts ({group}): {told}{rest}"
    subjects = _subjects(found)
    return finding(
        comparison,
        "fail",
        group,
        observed=found.observed(),
        wanted="the same on all",
        reason=reason,
        subjects=subjects,
        compared=compared,
        decided=False,
    )


def _subjects(found: Odd) -> dict[str, str]:
    return {} if set(found.has) == {""} else dict(found.has)


def stands_apart(
    comparison: Comparison, group: str, values: Mapping[str, tuple[float, Bounds]], compared: int, outside: int
) -> FleetFinding:
    """A host with numbers far from those of the others. `outside`: on how many hosts that is so."""
    has = {device: f"{number(value)} {comparison.unit}".strip() for device, (value, _) in values.items()}
    _, bounds = max(values.values(), key=lambda each: abs(each[0] - each[1].middle))
    low = f"{number(bounds.low)} to " if comparison.below else "at most "
    return finding(
        comparison,
        "fail",
        group,
        observed=has[""] if set(has) == {""} else show.folded(has),
        wanted=f"{low}{number(bounds.high)}",
        reason=f"the median of {compared} hosts ({group}) is {number(bounds.middle)}",
        subjects={} if set(has) == {""} else has,
        compared=compared,
        agree=compared - outside,
    )


def number(value: float) -> str:
    """Three digits, and never an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

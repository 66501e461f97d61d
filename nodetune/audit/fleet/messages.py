"""Write the finding of a comparison for one host. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from nodetune.api.model import FleetFinding
from nodetune.audit.fleet.consensus import Consensus, Odd, Pool
from nodetune.checks.fleet_comparisons import Comparison
from nodetune.foundation import text as plain_text
from nodetune.statistics.outliers import Bounds
from nodetune.statistics.thresholds import MIN_FOR_MAJORITY

MAX_VALUES = 4
MAX_LENGTH = 4000


def finding(
    comparison: Comparison, status: str, group: str, observed: str = "", wanted: str = "", reason: str = ""
) -> FleetFinding:
    """Make a finding of a comparison. Its texts contain data from hosts, so their length is limited."""
    observed, wanted, reason = (plain_text.plain(text, MAX_LENGTH) for text in (observed, wanted, reason))
    words = (comparison.title, observed, wanted, reason)
    manual = comparison.next if status == "fail" else ""
    return FleetFinding(
        comparison.id,
        status,
        comparison.severity,
        *words,
        manual=manual,
        repair=comparison.repair,
        cost=comparison.cost,
        group=group,
    )


def skipped(comparison: Comparison, group: str, reason: str) -> FleetFinding:
    return finding(comparison, "skip", group, reason=reason)


def too_few(comparison: Comparison, group: str, hosts: int) -> FleetFinding:
    """Make the finding for a group that is too small for a majority."""
    count = plain_text.count(hosts, "host")
    return skipped(comparison, group, f"{count} ({group}): a comparison needs at least {MIN_FOR_MAJORITY}")


def odd(
    comparison: Comparison, group: str, found: Odd, pools: Mapping[Pool, Consensus], compared: int, reference: str
) -> FleetFinding:
    """Make the finding for a host that differs from most or from the reference."""
    worst = min((pools[pool] for pool in found.pools), key=lambda pool: pool.hosts[pool.wanted or ""])
    agree = worst.hosts[worst.wanted or ""]
    reason = f"as on {reference}" if reference else f"as on {agree} of {worst.having} hosts ({group})"
    made = finding(comparison, "fail", group, found.observed(), found.expected(), reason)
    return replace(made, subjects=_subjects(found.has), compared=compared, agree=agree)


def undecided(
    comparison: Comparison, group: str, found: Odd, pools: Mapping[Pool, Consensus], compared: int
) -> FleetFinding:
    """Make the finding for a host of a group without a majority: no host is the odd one."""
    spread = next(pools[pool] for pool in found.pools)
    values = spread.hosts.most_common()
    counted = ", ".join(f"{count} have {text}" for text, count in values[:MAX_VALUES])
    rest = f", and {len(values) - MAX_VALUES} other values" if len(values) > MAX_VALUES else ""
    reason = f"no majority among {spread.having} hosts ({group}): {counted}{rest}"
    made = finding(comparison, "fail", group, found.observed(), "the same on all", reason)
    return replace(made, subjects=_subjects(found.has), compared=compared, decided=False)


def _subjects(has: Mapping[str, str]) -> dict[str, str]:
    return {} if set(has) == {""} else dict(has)


def outlier(
    comparison: Comparison, group: str, values: Mapping[str, tuple[float, Bounds]], compared: int, outside: int
) -> FleetFinding:
    """Make the finding for a host with outliers. `outside`: the number of such hosts."""
    has = {device: f"{number(value)} {comparison.unit}".strip() for device, (value, _) in values.items()}
    _, bounds = max(values.values(), key=lambda each: abs(each[0] - each[1].middle))
    low = f"{number(bounds.low)} to " if comparison.below else "at most "
    observed = has[""] if set(has) == {""} else plain_text.folded(has)
    reason = f"the median of {compared} hosts ({group}) is {number(bounds.middle)}"
    made = finding(comparison, "fail", group, observed, f"{low}{number(bounds.high)}", reason)
    return replace(made, subjects=_subjects(has), compared=compared, agree=compared - outside)


def number(value: float) -> str:
    """Format a number with three digits and without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

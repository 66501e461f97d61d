"""Compare the facts of many hosts: what differs between hosts that should be alike, and which are outliers. Pure."""

from nodetune.audit.fleet.collector import GPU, WAYS, CohortError, Collector, ReferenceHostError, Row
from nodetune.checks.fleet_comparisons import AREA, Comparison, every, is_fleet

__all__ = [
    "AREA",
    "GPU",
    "WAYS",
    "CohortError",
    "Collector",
    "Comparison",
    "ReferenceHostError",
    "Row",
    "every",
    "is_fleet",
]

"""Facts of many hosts → what differs between hosts that should be alike, and which stand apart. Pure."""

from nodetune.fleet.census import BadGroup, BadReference, Census, Row
from nodetune.fleet.comparisons import AREA, Comparison, every, is_fleet
from nodetune.fleet.found import FleetFinding
from nodetune.fleet.groups import GPU, WAYS

__all__ = [
    "AREA",
    "GPU",
    "WAYS",
    "BadGroup",
    "BadReference",
    "Census",
    "Comparison",
    "FleetFinding",
    "Row",
    "every",
    "is_fleet",
]

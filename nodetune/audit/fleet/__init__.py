"""Compare the facts of many hosts: differences between hosts that should be alike, and outliers. Pure."""

from nodetune.audit.fleet.collector import CohortError, FleetComparison, HostValues, ReferenceHostError
from nodetune.audit.fleet.evaluate import findings

__all__ = ["CohortError", "FleetComparison", "HostValues", "ReferenceHostError", "findings"]

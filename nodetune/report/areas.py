"""The areas by which the formats for tools sort findings."""

from collections.abc import Mapping

from nodetune.api.model import Check, Finding


def area(found: Finding, checks: Mapping[str, Check]) -> str:
    """Return the area of a finding's check, or `site` for a site check."""
    check = checks.get(found.check)
    return check.area if check and check.area else "site"

"""Installed versions against the first ones with the fixes of security notices: nodetune/data/floors.yml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune import data
from nodetune.api import FactAbsentError, FactsView

PACKAGES = "packages.judged"


def below(version: str, floor: Mapping[str, Any]) -> str:
    """Return what a version lacks, or an empty text. The date of the table is part of it."""
    if data.version(_upstream(version)) >= data.version(_upstream(floor["fixed"])):
        return ""
    return f"{version}: fixed in {floor['fixed']} ({told(floor['notice'], floor['cve'])})"


def told(notice: str, cve: str) -> str:
    return f"{notice}, {cve}; data of {data.table('floors')['as_of']}"


def _upstream(version: str) -> str:
    """Return a version without the epoch and, of a maker's own package, its build."""
    version = version.partition(":")[2] or version
    return version if "ubuntu" in version else version.partition("-")[0]


def packages(facts: FactsView, names: Iterable[str]) -> dict[str, str]:
    """Return package → what it lacks, for those of these that are installed. Raise FactAbsentError if none is."""
    installed, floors = facts[PACKAGES], data.table("floors")["packages"]
    found = {name: below(installed[name]["version"], floors[name]) for name in names if name in installed}
    if not found:
        raise FactAbsentError("not installed as a package")
    return found

"""What only site files have: checks of their own, waivers, values for some hosts, and how nodes are provisioned."""

from __future__ import annotations

from nodetune.api.model import Check, Waiver
from nodetune.checks import fleet_comparisons
from nodetune.config import site_checks, site_provision
from nodetune.config import waivers as site_waivers
from nodetune.config.overlay import Overlay, Scope, overrides_of
from nodetune.config.site_provision import Provision
from nodetune.foundation.yaml_lines import LocatedYaml


def added(file: LocatedYaml) -> tuple[Check, ...]:
    """Read the checks of the site. Errors are collected."""
    return site_checks.read(file)


def provision(file: LocatedYaml) -> Provision | None:
    """Read what a node is provisioned with. Errors are collected."""
    with file.collecting():
        return site_provision.read(file)
    return None


def waivers(file: LocatedYaml, known: set[str]) -> tuple[Waiver, ...]:
    """Read the waivers. Errors are collected."""
    return site_waivers.parse(file, known | set(fleet_comparisons.every()))


def sections(file: LocatedYaml, known: set[str]) -> tuple[Overlay, ...]:
    """Read the values for some hosts. Errors are collected."""
    found = []
    for kind in ("groups", "hosts"):
        for name in (file.data or {}).get(kind) or {}:
            at = (kind, name)
            with file.collecting():
                if kind == "hosts":
                    site_waivers.read_hosts(file, name, *at)
                changes, lines = overrides_of(file, known, *at, "checks")
                found.append(Overlay(str(name), file.file, checks=changes, lines=lines, scope=Scope(kind, str(name))))
    return tuple(found)

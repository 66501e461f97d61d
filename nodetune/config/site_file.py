"""Read one site file: the content of any overlay, and what only site files have.

Only site files have added checks, waivers, the profile, values for some hosts, provisioning, and the price of a GPU hour.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodetune import checks
from nodetune.checks import fleet_comparisons
from nodetune.config import overlay, site_checks, site_provision, site_schema
from nodetune.config import waivers as site_waivers
from nodetune.config.overlay import Overlay, Scope
from nodetune.config.site_provision import Provision
from nodetune.foundation import yaml_lines
from nodetune.foundation.yaml_lines import LocatedYaml


def read(path: Path, more: Iterable[str] = ()) -> Overlay:
    """Read and check one site file. `more` are checks that earlier site files add. Raise FileError."""
    found, file = gather(path, more)
    file.finish()
    return found


def gather(path: Path, more: Iterable[str] = ()) -> tuple[Overlay, LocatedYaml]:
    """Read one file, and collect its errors. Raise FileError if it is not YAML."""
    file = yaml_lines.load(path, collect=True)
    site_schema.check(file)
    return parsed(file, path.stem, more), file


def parsed(file: LocatedYaml, name: str, more: Iterable[str] = ()) -> Overlay:
    """Parse a file. Errors are collected."""
    added = {each["id"]: number for number, each in enumerate((file.data or {}).get("add") or ()) if each}
    known = {*checks.catalogue(), *more, *added}
    found = overlay.parsed(file, name, known)
    return replace(
        found,
        checks=_with_gates(file, found.checks),
        add=site_checks.read(file),
        waivers=site_waivers.parse(file, known | set(fleet_comparisons.every())),
        profile=_names(file),
        provision=_provision(file),
        gpu_hour=(file.data or {}).get("gpu_hour"),
        lines={check_id: file.line("add", number) for check_id, number in added.items()} | dict(found.lines),
        sections=_sections(file, known),
    )


def _with_gates(file: LocatedYaml, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides with the `gate` of checks that the file adds. An override of the same check wins."""
    merged = dict(overrides)
    for each in (file.data or {}).get("add") or ():
        change = overrides.get(each["id"], {}) if each else None
        if each and "gate" in each and isinstance(change, dict):
            merged[each["id"]] = {"gate": each["gate"], **change}
    return merged


def _names(file: LocatedYaml) -> tuple[str, ...]:
    """Read the profiles of the site. Errors are collected."""
    given = file.data.get("profile", []) if file.data else []
    names = [given] if isinstance(given, str) else given
    for number, name in enumerate(names):
        with file.collecting():
            if name not in overlay.shipped_names():
                file.fail(overlay.no_profile(name), "profile", number)
    return tuple(names)


def _provision(file: LocatedYaml) -> Provision | None:
    """Read the provisioning settings. Errors are collected."""
    with file.collecting():
        return site_provision.read(file)
    return None


def _sections(file: LocatedYaml, known: set[str]) -> tuple[Overlay, ...]:
    """Read the values for some hosts. Errors are collected."""
    found = []
    for kind in ("groups", "hosts"):
        for name in (file.data or {}).get(kind) or {}:
            at = (kind, name)
            with file.collecting():
                if kind == "hosts":
                    site_waivers.read_hosts(file, name, *at)
                changes, lines = overlay.overrides_of(file, known, *at, "checks")
                found.append(Overlay(str(name), file.file, checks=changes, lines=lines, scope=Scope(kind, str(name))))
    return tuple(found)

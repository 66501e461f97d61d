"""What the proof of a fix on a virtual machine rests on, and what of that changed since.

A fix rests on its check, its builder, the templates and the host modules that the builder uses (each with what it imports from
the same folder), and on what check and profiles set. All of this is found in the code, so that nothing has to be listed. Of a file
of Python only what it does counts: no comment, no docstring, no import. A file that was moved counts as the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import nodetune
from nodetune import checks
from nodetune.api import derived
from nodetune.api.model import Check, Ref
from nodetune.config import overlay
from nodetune.foundation import paths
from nodetune.remediation import builders
from tests.machines.place import HERE, FleetError
from tests.support.imports import code_of, needed

ROOT = HERE.parents[1]
FIXED = HERE / "untuned" / "fixed.txt"
"""The checks whose fix test_apply.py sees applied, kept over a reboot, and rolled back byte for byte."""

COVERAGE = ROOT / "docs" / "coverage.yml"
"""`fixes` there names other tests; those on virtual machines prove the fix of one check as a whole."""

PACKAGE, BUILDERS = Path(nodetune.__file__).parent, Path(builders.__file__).parent
HOST = paths.shared("playbooks") / "module_utils" / "nodetune_host"
ONHOST = HOST / "onhost"
"""A room of its own, linked from there."""

VALUES = "the values of {}"


@cache
def proven_by() -> Mapping[str, str]:
    """Return each check whose fix is proven on a virtual machine → the file of tests. A site's own checks are left out."""
    others = yaml.safe_load(COVERAGE.read_text("utf-8"))["fixes"].items()
    found = {check: Path(test.partition("::")[0]).stem for check, test in others if test.startswith("tests/machines/")}
    found.update(dict.fromkeys(FIXED.read_text("utf-8").split(), "test_apply"))
    return {check: file for check, file in found.items() if check in checks.catalogue()}


def rests_on(check_id: str) -> dict[str, str]:
    """Return what the proof of a fix rests on → its hash. Raise FleetError where the code has no such part."""
    check = checks.load(check_id)
    found = {str(file.relative_to(ROOT)): _hash(file) for file in sorted(_files(check))}
    return {**found, VALUES.format(check_id): _digest(_values(check))}


def of_file(file: str) -> dict[str, str]:
    """Return what the proofs of all fixes of a file of tests rest on → hash."""
    fixes = (check_id for check_id, each in proven_by().items() if each == file)
    return {part: now for check_id in fixes for part, now in rests_on(check_id).items()}


def changed(now: Mapping[str, str], file: str, record: Mapping[str, Any]) -> list[str]:
    """Return the parts that are not as they were when a file of tests passed: their content was nowhere in it then."""
    then = set(record.get(file, {}).get("hashes", {}).get(file, {}).values())
    return [part for part, each in now.items() if each not in then]


def stale(check_id: str, record: Mapping[str, Any]) -> list[str]:
    """Return what changed since the fix of a check was proven; all that it rests on where it never was."""
    return changed(rests_on(check_id), proven_by()[check_id], record)


def _files(check: Check) -> frozenset[Path]:
    module = ROOT / f"{checks.catalogue()[check.id].replace('.', '/')}.py"
    parts = {
        "check": _needed(module, PACKAGE, module.parents[1]),
        "builder": _needed(BUILDERS / f"{check.remedy.kind}.py", PACKAGE, BUILDERS),
    }
    text = "\n".join(file.read_text("utf-8") for file in sorted(parts["builder"]))
    kinds = set(re.findall(r'"change": "(\w+)"', text)) - {"run"}
    host = (_needed(HOST / "resources" / f"{kind}.py", HOST, HOST) for kind in kinds)
    parts["host modules"] = frozenset(file for files in host for file in files if ONHOST not in file.parents)
    for name in (name for name, files in parts.items() if not files):
        raise FleetError(f"{check.id}: no file of its {name} was found: were they moved? Correct {Path(__file__).name}")
    computed = [Path(derived.__file__)] if isinstance(check.set, Ref) else []
    return _templates(text).union(computed, *parts.values())


def _templates(text: str) -> frozenset[Path]:
    """Return the templates that builders name, and those of their units (_boot: NAME.service.j2 and the like)."""
    units = re.findall(r'_boot\.(?:changes|settings|unit)\((?:host, )?"(\w+)"', text)
    every = paths.shared("templates").glob("*.j2")
    return frozenset(each for each in every if f'"{each.name}"' in text or each.name.partition(".")[0] in units)


def _values(check: Check) -> str:
    remedy = repr(replace(check.remedy, steps=""))
    layers = {path.name: _checks_of(path, path.stat().st_mtime_ns) for path in sorted(overlay.FOLDER.glob("*.yml"))}
    set_there = {
        name: {key: change[key] for key in ("accept", "set") if key in change}
        for name, change in ((name, changes.get(check.id)) for name, changes in layers.items())
        if isinstance(change, dict)
    }
    return f"{remedy} {check.set!r} {json.dumps(set_there, sort_keys=True)}"


# Read once, again where a file changed


_needed = cache(needed)


@cache
def _checks_of(profile: Path, _: int) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(profile.read_text("utf-8"))["checks"]
    return found


def _hash(file: Path) -> str:
    return _hash_of(file, file.stat().st_mtime_ns)


@cache
def _hash_of(file: Path, _: int) -> str:
    text = file.read_text("utf-8")
    return _digest(code_of(text) if file.suffix == ".py" else text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]

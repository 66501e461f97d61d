"""Lines of /etc/nccl.conf and /etc/environment: comments and the lines of others stay. Programs read it when they start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("nccl.settings",)
PATHS = ("/etc/nccl.conf", "/etc/environment")
"""Files with independent lines. A shell profile is a program: without a line it may do something else."""

HIDDEN = "(hidden)"
"""As the probe shows the value of a secret."""

MAX_LINE_BYTES = 4095
"""Characters of a line that are surely all there are: NCCL reads no longer line, and the probe cuts one."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    made = (_without(fix, host) if fix.target == "lines" else [_assignment(fix, host)] for fix in fixes)
    return [change for each in made for change in each]


def _unset(fix: Fix, host: HostView) -> dict[str, Any]:
    """Remove variables by their names: the facts about threads have no lines."""
    values = {named(subject.rpartition(" ")[2], "variable", r"[A-Z]\w*"): None for subject in fix.subjects}
    return _edit(fix.file, "assignments", {"values": values}, host.checks(fix))


def _assignment(fix: Fix, host: HostView) -> dict[str, Any]:
    if fix.target == "variables":
        return _unset(fix, host)
    values = {named(fix.target, "NCCL variable", r"[A-Z]\w*"): text_of(fix.value)}
    return _edit(PATHS[0], "assignments", {"values": values}, host.checks(fix))


def _edit(path: str, how: str, content: dict[str, Any], checks: list[str]) -> dict[str, Any]:
    return {"change": "edit", "path": path, "how": how, "with": content, "checks": checks}


def _without(fix: Fix, host: HostView) -> list[dict[str, Any]]:
    """Remove lines by their text, not by their number: an earlier change may have removed others."""
    here = {path: [each for each in fix.subjects if each.startswith(f"{path}:")] for path in PATHS}
    elsewhere = ", ".join(each for each in fix.subjects if not each.startswith(tuple(f"{path}:" for path in PATHS)))
    only = " and ".join(PATHS)
    if not any(here.values()):
        raise UnfixableError(f"{elsewhere}: nodetune edits only {only}; remove this line manually")
    if elsewhere:
        host.note(f"{elsewhere}: nodetune edits only {only}, so this line stays. Remove it manually.")
    return [
        _edit(path, "without_lines", _lines(path, subjects, host), host.checks(fix))
        for path, subjects in here.items()
        if subjects
    ]


def _lines(path: str, subjects: Iterable[str], host: HostView) -> dict[str, list[str]]:
    """Return the lines to remove. If a line occurs more often than it fails, one stays (once)."""
    written = {str(each["line"]): str(each["raw"]) for each in host["nccl.settings"] if each["file"] == path}
    gone = [_text(path, subject, written) for subject in subjects]
    once = {line for line in gone if gone.count(line) < list(written.values()).count(line)}
    return {"lines": sorted({*gone} - once), **({"once": sorted(once)} if once else {})}


def _text(path: str, subject: str, written: Mapping[str, str]) -> str:
    number = re.match(r"(\d+) ", subject[len(path) + 1 :])
    line = written.get(number.group(1)) if number else None
    if line is None or len(line) > MAX_LINE_BYTES or line.endswith(f"={HIDDEN}") or "\\x" in line:
        raise UnfixableError(f"{subject}: its exact text is unknown; remove it manually")
    return line

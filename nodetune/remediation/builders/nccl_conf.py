"""Lines of /etc/nccl.conf: comments and the lines of others stay. Programs read it when they start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.builders._own import named, text_of
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("nccl.settings",)
PATH = "/etc/nccl.conf"
HIDDEN = "(hidden)"
"""As the probe shows the value of a secret."""

MAX_LINE_BYTES = 4095
"""Characters of a line that are surely all there are: NCCL reads no longer line, and the probe cuts one."""


def changes(fixes: Sequence[Fix], host: HostView) -> list[dict[str, Any]]:
    return [_without(fix, host) if fix.target == "lines" else _assignment(fix, host) for fix in fixes]


def _assignment(fix: Fix, host: HostView) -> dict[str, Any]:
    values = {named(fix.target, "NCCL variable", r"[A-Z]\w*"): text_of(fix.value)}
    return _edit("assignments", {"values": values}, host.checks(fix))


def _edit(how: str, content: dict[str, Any], checks: list[str]) -> dict[str, Any]:
    return {"change": "edit", "path": PATH, "how": how, "with": content, "checks": checks}


def _without(fix: Fix, host: HostView) -> dict[str, Any]:
    """Remove lines by their text, not by their number: an earlier change may have removed others."""
    here = [each for each in fix.subjects if each.startswith(f"{PATH}:")]
    elsewhere = ", ".join(each for each in fix.subjects if each not in here)
    if not here:
        raise UnfixableError(f"{elsewhere}: nodetune edits only {PATH}; remove this line manually")
    if elsewhere:
        host.note(f"{elsewhere}: nodetune edits only {PATH}, so this line stays. Remove it manually.")
    return _edit("without_lines", {"lines": sorted(set(_lines(here, host)))}, host.checks(fix))


def _lines(subjects: Iterable[str], host: HostView) -> Iterable[str]:
    written = {str(each["line"]): str(each["raw"]) for each in host["nccl.settings"] if each["file"] == PATH}
    for subject in subjects:
        number = re.match(r"(\d+) ", subject[len(PATH) + 1 :])
        line = written.get(number.group(1)) if number else None
        if line is None or len(line) > MAX_LINE_BYTES or line.endswith(f"={HIDDEN}") or "\\x" in line:
            raise UnfixableError(f"{subject}: its exact text is unknown; remove it manually")
        yield line

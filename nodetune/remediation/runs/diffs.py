"""Differences as Ansible's modules return them → unified diffs. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any

from nodetune.foundation import text


def unified(diffs: Iterable[Mapping[str, Any]]) -> str:
    """Join diffs (before, after, before_header, after_header) into one unified diff."""
    return "".join(line for each in diffs for line in _one_diff(each))


def _one_diff(diff: Mapping[str, Any]) -> Iterator[str]:
    # only \n ends a line, whatever else the texts of hosts hold
    before, after = (StringIO(_text(diff.get(side)), newline="\n").readlines() for side in ("before", "after"))
    old, new = (text.plain(diff.get(f"{side}_header") or side) for side in ("before", "after"))
    if before == after:  # an empty file that comes or goes, or another mode: the headers tell
        yield f"--- {old}\n+++ {new}\n"
    for line in difflib.unified_diff(before, after, old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, indent=1) + "\n"

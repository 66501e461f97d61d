"""Xids that a site judges by its own threshold: `add: [{id: site-xid-31, xid: 31, accept: {at_most: 19}}]`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any

from nodetune.api import Check, FactsView
from nodetune.checks.shared.xid_recovery import NEEDS, require_gpu, standing


def source(number: int) -> dict[str, Any]:
    """Return what the check of an Xid judges: how often each GPU logged it since its last reset."""
    return {"needs": ("xid.events", *NEEDS), "observe": partial(_counts, number), "log": inf}


def number_of(check: Check) -> int | None:
    """Return the Xid that a check of a site judges; None for other checks."""
    observe = check.observe
    return observe.args[0] if isinstance(observe, partial) and observe.func is _counts else None


def _counts(number: int, facts: FactsView) -> Mapping[str, int] | int:
    require_gpu(facts, "xid.events")
    counts: dict[str, int] = {}
    for each in standing(facts):
        if each["xid"] == number:
            counts[each["bdf"]] = counts.get(each["bdf"], 0) + each["count"]
    return counts or 0

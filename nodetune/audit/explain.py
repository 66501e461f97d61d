"""What a check's docstring teaches, taken apart by its fixed headings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodetune.api import predicates
from nodetune.api.model import Check, disruption_name
from nodetune.foundation import text

HEADINGS = ("Why it matters", "Confirm manually", "Side effects of the fix", "Sources")


@dataclass(frozen=True)
class Explanation:
    """A check's docstring: the title, and heading → text (one paragraph each)."""

    title: str
    sections: dict[str, str]


def explain(check: Check) -> Explanation:
    """Take the docstring apart. A missing heading is missing here too."""
    pattern = "|".join(re.escape(each) for each in HEADINGS)
    parts = re.split(rf"^({pattern}):", check.doc, flags=re.MULTILINE)
    sections = {head: " ".join(body.split()) for head, body in zip(parts[1::2], parts[2::2], strict=True)}
    return Explanation(check.title, sections)


def wanted(check: Check) -> str:
    """Describe what the check accepts; name values that are computed from facts."""
    if check.accept is None:
        return "left untouched"
    named = predicates.resolve(check.accept, lambda name: f"({name.rpartition('.')[2].replace('_', ' ')})")
    return predicates.as_predicate(named).describe(lambda value: text.value(value, check.unit))


def fix(check: Check) -> str:
    """Describe the fix in one line."""
    remedy = check.remedy
    if remedy.kind == "manual":
        return remedy.steps or "nothing to set"
    where = f", persisted in {remedy.file}" if remedy.file else ""
    return f"{remedy.kind.replace('_', ' ')} {remedy.target}{where} (disruption: {disruption_name(remedy.disruption)})"

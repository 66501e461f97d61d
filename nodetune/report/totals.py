"""What an audit came to, in one line."""

from __future__ import annotations

from nodetune import show
from nodetune.model import SEVERITIES, HostResult
from nodetune.outcome import Summary
from nodetune.report.lines import STYLE


def compliant(result: HostResult) -> bool:
    """Was everything that applies to a host judged, and nothing found?"""
    return result.state == "ok" and not any(found.status in ("fail", "unknown") for found in result.findings)


def totals(summary: Summary, compliant: int) -> list[tuple[str, str] | str]:
    parts: list[tuple[str, str] | str] = [(f"{show.count(summary.reached, 'host')} audited", "bold")]
    if summary.reached < summary.hosts:
        parts.append((f", {summary.hosts - summary.reached} not reached", "bold magenta"))
    if summary.hosts > 1:
        parts.append(f", {compliant} compliant")
    parts.append(": ")
    failing = [
        (f"{summary.failing[each]} {each}", STYLE[each]) for each in reversed(SEVERITIES) if summary.failing.get(each)
    ]
    for number, part in enumerate(failing):
        parts += [", ", part] if number else [part]
    found = sum(summary.failing.values())
    parts.append(f" finding{'s' * (found != 1)}" if found else "no findings")
    rest = [
        f"{summary.statuses[each]} {word}"
        for each, word in (("pass", "passed"), ("skip", "not applicable"), ("unknown", "unknown"), ("waived", "waived"))
        if summary.statuses.get(each)
    ]
    return [*parts, f" · {' · '.join(rest)}"] if rest else parts

"""What an audit at a terminal begins with: the hosts, their profiles, and how old the facts are."""

from __future__ import annotations

from collections.abc import Sequence

from nodetune.api.model import HostResult
from nodetune.foundation import text
from nodetune.report.text.findings import aged
from nodetune.report.text.host_names import MOST_REASONS, named
from nodetune.report.text.lines import Lines


def print_heading(out: Lines, results: Sequence[HostResult]) -> None:
    """Print which hosts were judged by which profile and why, and whose facts are not those of now."""
    profiles: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.state == "ok":
            profiles.setdefault((result.profile, result.profile_reason), []).append(result.host)
    for (name, reason), hosts in profiles.items():
        because = f" ({text.plain(reason)})" if reason else ""
        out.line((named(hosts, out.room() // 2), "bold"), f"  profile {name}{because}")
    for message, hosts in list(aged(results).items())[:MOST_REASONS]:
        out.line((message, "yellow"), "" if len(results) == 1 else f": {named(hosts)}")
    out.line("")

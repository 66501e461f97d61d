"""The proposed changes to the configuration of Slurm and the kubelet, as diffs for review.

Nothing is written to any host because these files belong to the cluster. Hosts with the same change share a hunk. The
facts contain settings, not whole files, so a hunk names hosts instead of line numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostFacts, HostResult
from nodetune.foundation import by_key, nodeset, text
from nodetune.remediation import kubelet_diff, slurm_diff
from nodetune.remediation.slurm_diff import HOSTS

HEADER = """\
# Proposed by nodetune plan from the facts of the hosts. Nothing was changed. Review each hunk, then change the files
# where your site keeps them. Read the lines that begin with # first.
"""
NOTHING = "# No change is proposed for any host.\n"
NEEDS = (*slurm_diff.NEEDS, *kubelet_diff.NEEDS)
MALFORMED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""Exceptions that facts of an unexpected shape may cause, as in nodetune.audit."""

Hunk = tuple[str, tuple[str, ...]]
"""A file and the lines of its hunk."""


def write(results: Iterable[HostResult], stream: TextIO) -> int:
    """Write the diff. Return the number of its hunks."""
    hosts = by_key((hunk, result.host) for result in results if result.facts for hunk in hunks(result.facts))
    stream.write(HEADER if hosts else HEADER + NOTHING)
    for file in sorted({file for file, _ in hosts}):
        stream.write(f"\n--- {file}\n+++ {file}\n")
        for (_, lines), names in ((hunk, names) for hunk, names in hosts.items() if hunk[0] == file):
            folded = text.plain(nodeset.fold(names), MAX_BYTES)
            stream.write(f"@@ {folded} @@\n" + "".join(f"{line.replace(HOSTS, folded)}\n" for line in lines))
    return len(hosts)


MAX_BYTES = 1 << 20
"""Longest folded node set: a shortened one would mean other hosts."""


def hunks(facts: HostFacts) -> Iterator[Hunk]:
    """Yield the changes for one host, except where a fact could not be read: the audit reports that."""
    view = FactsView(facts, NEEDS, lookup)
    for part in (*slurm_diff.PARTS, kubelet_diff.changes):
        try:
            file, lines = part(view)
        except (FactAbsentError, FactUnreadError, *MALFORMED):
            continue
        if lines:
            yield text.plain(file), tuple(lines)

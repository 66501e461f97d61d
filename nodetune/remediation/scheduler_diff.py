"""The proposed changes to the configuration of Slurm and the kubelet, as diffs for review.

Nothing is written to any host because these files belong to the cluster. Hosts with the same change share a hunk. The
facts contain settings, not whole files, so a hunk names hosts instead of line numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostFacts, HostResult
from nodetune.audit.evaluate import MALFORMED
from nodetune.foundation import by_key, nodeset, text
from nodetune.remediation import kubelet_diff, slurm_diff
from nodetune.remediation.slurm_diff import HOSTS

if TYPE_CHECKING:
    from nodetune.remediation.fabric_file import Fabric

HEADER = """\
# Proposed by nodetune plan from the facts of the hosts. Nothing was changed. Review each hunk, then change the files
# where your site keeps them. Read the lines that begin with # first.
"""
NOTHING = "# No change is proposed for any host.\n"
NEEDS = (*slurm_diff.NEEDS, *kubelet_diff.NEEDS)

Hunk = tuple[str, tuple[str, ...]]
"""A file and the lines of its hunk."""


def write(results: Sequence[HostResult], stream: TextIO, fabric: Fabric | None = None) -> int:
    """Write the diff; with a fabric, its topology is in it. Return the number of its hunks."""
    parts = tuple(part for part in PARTS if fabric is None or part is not slurm_diff.topology)
    hosts = by_key((hunk, result.host) for result in results if result.facts for hunk in hunks(result.facts, parts))
    of_fabric = _topology(results, fabric) if fabric else ""
    stream.write(HEADER if hosts or of_fabric else HEADER + NOTHING)
    for file in sorted({file for file, _ in hosts}):
        stream.write(f"\n--- {file}\n+++ {file}\n")
        for (_, lines), names in ((hunk, names) for hunk, names in hosts.items() if hunk[0] == file):
            folded = text.plain(nodeset.for_slurm(names), MAX_BYTES)
            stream.write(f"@@ {folded} @@\n" + "".join(f"{line.replace(HOSTS, folded)}\n" for line in lines))
    stream.write(of_fabric)
    return len(hosts) + of_fabric.count("\n@@ ")


def _topology(results: Sequence[HostResult], fabric: Fabric) -> str:
    from nodetune.remediation import topology_diff  # most plans have no fabric

    file, lines = topology_diff.lines(results, fabric)
    hunk = "@@ all nodes of this run @@\n" if any(line.startswith("+") for line in lines) else ""
    return f"\n--- {file}\n+++ {file}\n{hunk}" + "".join(f"{line}\n" for line in lines)


MAX_BYTES = 1 << 20
"""Longest folded node set: a shortened one would mean other hosts."""


PARTS = (*slurm_diff.PARTS, kubelet_diff.changes)


def hunks(facts: HostFacts, parts: Iterable[Callable[[FactsView], tuple[str, list[str]]]] = PARTS) -> Iterator[Hunk]:
    """Yield the changes for one host, except where a fact could not be read: the audit reports that."""
    view = FactsView(facts, NEEDS, lookup)
    for part in parts:
        try:
            file, lines = part(view)
        except (FactAbsentError, FactUnreadError, *MALFORMED):
            continue
        if lines:
            yield text.plain(file), tuple(lines)

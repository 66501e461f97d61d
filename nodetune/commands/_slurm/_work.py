"""What `nodetune slurm install`, `uninstall` and `diff` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from nodetune import nodeset, runs, workflow
from nodetune.choice import Choice
from nodetune.commands import _options, _run
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, OK
from nodetune.report import apply_text
from nodetune.report.text import Lines, console
from nodetune.runs.diffs import unified
from nodetune.slurm import difference
from nodetune.slurm.difference import Difference
from nodetune.slurm.nodes import Guarding, Installed, Node
from nodetune.slurm.plays import Plays
from nodetune.transport import Target
from nodetune.workflow import Reach

WAY = ("inventory", "limit", "user", "become", "transport")
"""Options that a rollback takes again from the record."""


@dataclass(frozen=True)
class Work:
    """What is known before anything is done."""

    reach: Reach
    targets: list[Target]
    choice: Choice
    nodes: list[Node]
    lost: list[HostResult]

    @property
    def code(self) -> int:
        return INCOMPLETE if self.lost else OK

    @property
    def many(self) -> str:
        return f"{len(self.nodes)} hosts" if len(self.nodes) > 1 else self.nodes[0].name


def prepare(options: dict[str, Any], judge: bool) -> Work:
    """Probe the hosts; those that cannot be worked on count as lost."""
    choice = _options.choice(options.pop("profiles"), options.pop("site"))
    reach = _options.reach(options)
    targets = reach.targets()
    wide = (Guarding if judge else Installed)(choice.profiles, choice.site)
    if judge:
        results = _run.with_facts(targets, wide, reach)
    else:
        results = workflow.by_name(workflow.probe_hosts(targets, wide, reach))
    nodes, lost = [Node(each) for each in results if each.facts], [each for each in results if not each.facts]
    for node in [each for each in nodes if each.uid]:
        nodes.remove(node)
        lost.append(HostResult(node.name, "not root", "this takes root: log in as root, or use --become (-b)"))
    return Work(reach, targets, choice, nodes, lost)


def differences(nodes: Iterable[Node], made: Mapping[str, Mapping[str, Any]]) -> dict[str, Difference]:
    """Host → what its new policy would change."""
    return {node.name: difference.compare(node.policy, made[node.name]) for node in nodes}


def recorded(command: str, options: Mapping[str, Any], work: Work, root: Path | None) -> runs.Run:
    """Begin the record; it keeps the way to the hosts, which a rollback takes again."""
    inventory = options.get("inventory")
    lasting = str(Path(inventory).absolute()) if inventory and Path(inventory).exists() else inventory
    return runs.Run.create(command, options, [node.name for node in work.nodes], lasting, root)


def show(stream: TextIO, plays: Plays) -> int:
    """What a rehearsal came to."""
    diffs = {host: [unified([each]) for each in outcome.gathered("diff")] for host, outcome in plays.outcomes.items()}
    apply_text.print_diffs(stream, diffs, len(diffs) == 1)
    _problems(stream, plays)
    if not any(diffs.values()):
        Lines(console(stream)).line("nothing would change")
    return plays.code()


def tell(stream: TextIO, plays: Plays, problem: str) -> None:
    changed = {
        host: [str(each["label"]) for each in outcome.gathered("done") if each.get("changed")]
        for host, outcome in plays.outcomes.items()
    }
    out = Lines(console(stream))
    busy = [host for host, labels in changed.items() if labels]
    out.line((f"{sum(map(len, changed.values()))} changes", "bold"), f" on {nodeset.fold(busy)}" if busy else "")
    _problems(stream, plays)
    if problem:
        out.line(("problem  ", "bold red"), problem)


def _problems(stream: TextIO, plays: Plays) -> None:
    problems = {host: outcome.gathered("problems") for host, outcome in plays.outcomes.items()}
    failed = {host: outcome.message for host, outcome in plays.outcomes.items() if outcome.state != "ok"}
    apply_text.print_problems(stream, problems, failed, len(problems) == 1)

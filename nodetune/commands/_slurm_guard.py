"""What `nodetune slurm install`, `uninstall` and `diff` do, in their order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from nodetune import guardinstall, nodeset
from nodetune.commands import _apply, _options, _slurm_nodes, _slurm_text
from nodetune.commands._slurm_nodes import Answer, How, Node, Plays
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.report import apply_text
from nodetune.report.text import Lines, console
from nodetune.runs.diffs import unified
from nodetune.transport import Target
from nodetune.workflow import Choice, Reach

DIFFERS = 1
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


def install(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Probe, show, ask, install, and tell what the running Slurm says. Raises _slurm_nodes.BadSetting, located.BadFile."""
    how, given = _how(options), _settings(options)
    dry_run, yes, record = options.pop("dry_run"), options.pop("yes"), _recorded(options, given)
    work = _work(options, stream, judge=True)
    made = _slurm_nodes.policies(work.nodes, work.choice, given)
    _slurm_text.print_policies(stream, made)
    _slurm_text.print_differences(stream, _differences([node for node in work.nodes if node.policy], made))
    _slurm_text.print_failing(stream, work.nodes)
    _slurm_text.print_gres(stream, work.nodes)
    if dry_run:
        return max(work.code, _rehearse_install(work, made, how, stream))
    if not work.nodes:
        return work.code
    modes = ", ".join(sorted({policy["mode"] for policy in made.values()}))
    _apply.confirm(f"Install the guard ({modes}) on {_many(work.nodes)}?", yes)
    run = _slurm_nodes.recorded("slurm install", record, work.nodes, root)
    code = NOT_REACHED
    try:
        with _apply.progress(len(work.nodes)) as tell:
            plays = Plays(work.targets, work.reach, run, tell)
            _put(work, made, how, plays)
            problem = plays.reconfigure(work.nodes) if how.reconfigure else ""
            there = plays.ask([node for node in work.nodes if node.slurm])
        code = max(plays.code(), NOT_REACHED if problem else OK, work.code)
    finally:
        run.finish(code)
    _tell(stream, plays, problem)
    _slurm_text.print_running(stream, work.nodes, there)
    apply_text.print_way_back(stream, run.id)
    return code


def _how(options: dict[str, Any]) -> How:
    timer, textfile = options.pop("timer"), options.pop("textfile")
    return How(
        options.pop("python"),
        options.pop("write_slurm_conf"),
        options.pop("reconfigure"),
        textfile if timer else None,
    )


def _put(work: Work, made: Mapping[str, Mapping[str, Any]], how: How, plays: Plays) -> None:
    before = [node for node in work.nodes if node.policy]
    groups = _slurm_nodes.install_groups(work.nodes, made, how, plays.ask(before))
    with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
        archive.write(guardinstall.program().archive)
        archive.flush()
        plays.change(groups, Path(archive.name))


def _rehearse_install(work: Work, made: Mapping[str, Mapping[str, Any]], how: How, stream: TextIO) -> int:
    plays = Plays(work.targets, work.reach, None, _apply.silent)
    plays.change(_slurm_nodes.install_groups(work.nodes, made, how, plays.ask(work.nodes)))
    if not how.write_slurm_conf:
        found = {node.name: node.settings for node in work.nodes if node.slurm}
        _slurm_text.print_lacking(stream, found, reload=False)
    return _show(stream, plays)


def uninstall(options: dict[str, Any], root: Path | None, stream: TextIO) -> int:
    """Lines out of slurm.conf, then everything else where Slurm no longer calls it."""
    dry_run, yes, reconfigure = options.pop("dry_run"), options.pop("yes"), options.pop("reconfigure")
    record = _recorded(options, {})
    work = _work({**options, "profiles": (), "site": None}, stream, judge=False)
    if dry_run:
        plays = Plays(work.targets, work.reach, None, _apply.silent)
        there = plays.ask(work.nodes)
        plays.change({node.name: [*_detached(node), *_removed(node, there)] for node in work.nodes})
        return max(work.code, _show(stream, plays))
    if not work.nodes:
        return work.code
    _apply.confirm(f"Take the guard off {_many(work.nodes)}?", yes)
    run = _slurm_nodes.recorded("slurm uninstall", record, work.nodes, root)
    code = NOT_REACHED
    try:
        with _apply.progress(len(work.nodes)) as tell:
            plays = Plays(work.targets, work.reach, run, tell)
            plays.change({node.name: _detached(node) for node in work.nodes})
            problem = plays.reconfigure(work.nodes) if reconfigure else ""
            there = plays.ask(work.nodes)
            called = [node for node in work.nodes if guardinstall.calls_us(there.get(node.name, Answer()).slurm or {})]
            free = [node for node in work.nodes if node not in called]
            plays.change({node.name: [*_detached(node), *_removed(node, there)] for node in free})
        code = max(plays.code(), NOT_REACHED if problem or called else OK, work.code)
    finally:
        run.finish(code)
    _tell(stream, plays, problem)
    if called:
        names = nodeset.fold(node.name for node in called)
        Lines(console(stream)).line(
            ("left      ", "yellow"),
            f"Slurm still calls the guard on {names}: scontrol reconfigure, then uninstall again",
        )
    apply_text.print_way_back(stream, run.id)
    return code


def _detached(node: Node) -> list[dict[str, Any]]:
    return guardinstall.detach(node.writable_conf) if node.writable_conf else []


def _removed(node: Node, there: Mapping[str, Answer]) -> list[dict[str, Any]]:
    return guardinstall.remove(there.get(node.name, Answer()).folders, node.service)


def diff(options: dict[str, Any], stream: TextIO) -> int:
    """Nothing is changed. Raises _slurm_nodes.BadSetting, located.BadFile."""
    given = _settings(options)
    work = _work(options, stream, judge=True)
    made = _slurm_nodes.policies(work.nodes, work.choice, given)
    found = _differences(work.nodes, made)
    bare = [node.name for node in work.nodes if not node.policy]
    if bare:
        Lines(console(stream)).line(("installed ", "cyan"), f"nothing on {nodeset.fold(bare)}")
    _slurm_text.print_differences(stream, found)
    _slurm_text.print_failing(stream, work.nodes)
    failing = any(node.failing() for node in work.nodes)
    if not any(found.values()) and not failing:
        Lines(console(stream)).line("an install would change nothing that gates")
    return max(work.code, DIFFERS if any(found.values()) or failing else OK)


def _differences(nodes: Iterable[Node], made: Mapping[str, Mapping[str, Any]]) -> dict[str, guardinstall.Difference]:
    return {node.name: guardinstall.compare(node.policy, made[node.name]) for node in nodes}


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of the policy that were given; takes them out of the options. Raises _slurm_nodes.BadSetting."""
    named = {name: options.pop(name) for name in ("mode", "act", "shared")}
    given = {**options.pop("settings"), **{name: value for name, value in named.items() if value is not None}}
    _slurm_nodes.check_settings(given)
    return given


def _recorded(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: options[name] for name in WAY}, **given}


def _work(options: dict[str, Any], stream: TextIO, judge: bool) -> Work:
    choice = _options.choice(options.pop("profiles"), options.pop("site"))
    reach = _options.reach(options)
    targets = reach.targets()
    nodes, lost = _slurm_nodes.probed(targets, choice, reach, judge)
    for node in [each for each in nodes if each.uid]:
        nodes.remove(node)
        lost.append(HostResult(node.name, "not root", "this takes root: log in as root, or use --become (-b)"))
    _slurm_text.print_not_reached(stream, lost)
    return Work(reach, targets, choice, nodes, lost)


def _many(nodes: Sequence[Node]) -> str:
    return f"{len(nodes)} hosts" if len(nodes) > 1 else nodes[0].name


def _show(stream: TextIO, plays: Plays) -> int:
    """What a rehearsal came to."""
    diffs = {host: [unified([each]) for each in outcome.gathered("diff")] for host, outcome in plays.outcomes.items()}
    apply_text.print_diffs(stream, diffs, len(diffs) == 1)
    _problems(stream, plays)
    if not any(diffs.values()):
        Lines(console(stream)).line("nothing would change")
    return plays.code()


def _tell(stream: TextIO, plays: Plays, problem: str) -> None:
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

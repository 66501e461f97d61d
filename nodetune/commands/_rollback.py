"""Taking back what a run did: which hosts, which entries, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune import rollback, runs
from nodetune.commands import _apply, _options
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.playbook import Outcome
from nodetune.report import apply_data, apply_text, data
from nodetune.transport import Target
from nodetune.workflow import Reach

KEPT = ("limit", "user", "become", "transport")
"""How the hosts were reached: taken from the run where the command line does not say otherwise."""


def roll_back(given: str, root: Path | None, options: dict[str, Any], stream: TextIO, output_format: str) -> int:
    """Take back the run that `given` names. Raises runs.BadRun, inventory.BadInventory."""
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    taking = rollback.Rollback(options.pop("force"), options.pop("assume_drained"))
    of = runs.find(given, root)
    if of.state() == runs.RUNNING:
        raise runs.BadRun(f"run {of.id} still works: wait for it, or end it first")
    reach = _reach(of, options)
    targets = _targets(of, reach)
    gone = _gone(of, targets)
    if dry_run:
        outcomes = rollback.roll_back(of, targets, reach, taking, None, _apply.silent)
        return _shown({**outcomes, **gone}, stream, output_format, None)
    _apply.confirm(f"Take back run {of.id} on {len(targets)} hosts?", yes)
    run = runs.Run.create(
        "rollback",
        {"of": of.id, **vars(taking), **_way(reach)},
        [target.name for target in targets],
        reach.inventory,
        root,
    )
    code = NOT_REACHED
    try:
        with _apply.progress(len(targets)) as tell:
            outcomes = rollback.roll_back(of, targets, reach, taking, run, tell)
        code = _shown({**outcomes, **gone}, stream, output_format, run.id)
    finally:
        run.finish(code)
    return code


def _reach(of: runs.Run, options: dict[str, Any]) -> Reach:
    """The way to the hosts: as the run went, but for what was given now."""
    context = click.get_current_context()
    before = of.about.get("options", {})
    for name in KEPT:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "DEFAULT" and name in before:
            options[name] = before[name]
    options["inventory"] = options["inventory"] or of.about.get("inventory")
    if not options["inventory"]:
        options["limit"] = None
    return _options.reach(options)


def _way(reach: Reach) -> dict[str, Any]:
    """How the hosts were reached, for the rollback of this rollback."""
    return {name: getattr(reach, name) for name in KEPT}


def _targets(of: runs.Run, reach: Reach) -> list[Target]:
    """The hosts of the run, as far as --limit leaves them. Raises runs.BadRun when none is left."""
    found = [target for target in reach.targets() if target.name in of.hosts]
    if not found:
        raise runs.BadRun(f"none of these hosts is of run {of.id}: its hosts are {', '.join(of.hosts[:10])}")
    return found


def _gone(of: runs.Run, targets: Sequence[Target]) -> dict[str, Outcome]:
    """The hosts of the run that are in the inventory no more; none where a --limit says which are meant."""
    if click.get_current_context().get_parameter_source("limit") is not ParameterSource.DEFAULT:
        return {}
    why = "not among the hosts of the inventory: nothing was taken back there"
    left = sorted(set(of.hosts) - {target.name for target in targets})
    return {host: Outcome(host, "unreachable", why) for host in left}


def _shown(outcomes: Mapping[str, Outcome], stream: TextIO, output_format: str, run: str | None) -> int:
    """Print what was taken back, what was refused and what failed. Returns the exit code."""
    if output_format == "json":
        stream.write(data.text(apply_data.rolled_back(run, outcomes)))
    else:
        apply_text.print_rollback(stream, outcomes, run)
    lost = any(outcome.state == "unreachable" for outcome in outcomes.values())
    wrong = [
        outcome
        for outcome in outcomes.values()
        if outcome.state not in ("ok", "unreachable") or outcome.gathered("problems") or outcome.gathered("refused")
    ]
    return NOT_REACHED if wrong else INCOMPLETE if lost else OK

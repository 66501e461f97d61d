"""Roll back a run: select hosts and entries, and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune.audit.summary import INCOMPLETE, NOT_REACHED, OK
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.documents import apply as documents_apply
from nodetune.documents import audit
from nodetune.hosts import inventory
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remediation import rollback, runs
from nodetune.remediation.ansible import Outcome
from nodetune.report.text import apply

KEPT = ("limit", "user", "become", "transport")
"""How the hosts were reached: taken from the run where the command line does not say otherwise."""


def roll_back(given: str, root: Path | None, options: dict[str, Any], stream: TextIO, output_format: str) -> int:
    """Roll back the run that `given` names. Raise runs.RunError, inventory.InventoryError."""
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    taking = rollback.RollbackOptions(options.pop("force"), options.pop("assume_drained"))
    of = runs.find(given, root)
    if of.state() == runs.RUNNING:
        raise runs.RunError(f"run {of.id} is still running: wait for it or stop it")
    reach = _reach(of, options)
    targets = _targets(of, reach)
    gone = _gone(of, targets)
    if dry_run:
        outcomes = rollback.roll_back(of, targets, reach, taking, None, _apply.silent)
        return _shown({**outcomes, **gone}, stream, output_format, None)
    _apply.confirm(f"Roll back run {of.id} on {len(targets)} hosts?", yes)
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


def _reach(of: runs.Run, options: dict[str, Any]) -> ConnectionOptions:
    """Return the connection options of the run, with what was given now in their place."""
    context = click.get_current_context()
    before = of.about.get("options", {})
    for name in KEPT:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "DEFAULT" and name in before:
            options[name] = before[name]
    options["transport"] = cli_options.OLD_TRANSPORTS.get(options["transport"], options["transport"])
    options["inventory"] = options["inventory"] or of.about.get("inventory")
    if not options["inventory"]:
        options["limit"] = None
    return cli_options.reach(options)


def _way(reach: ConnectionOptions) -> dict[str, Any]:
    """Return how the hosts were reached, for the rollback of this rollback."""
    return {name: getattr(reach, name) for name in KEPT}


def _targets(of: runs.Run, reach: ConnectionOptions) -> list[Target]:
    """Return the hosts of the run that --limit selects. Raises runs.RunError when none is left."""
    found = [target for target in inventory.selected(reach) if target.name in of.hosts]
    if not found:
        raise runs.RunError(f"run {of.id} includes none of these hosts: its hosts are {', '.join(of.hosts[:10])}")
    return found


def _gone(of: runs.Run, targets: Sequence[Target]) -> dict[str, Outcome]:
    """Return the hosts of the run that the inventory no longer has, unless --limit selects hosts."""
    if click.get_current_context().get_parameter_source("limit") is not ParameterSource.DEFAULT:
        return {}
    why = "not in the inventory: nothing was undone there"
    left = sorted(set(of.hosts) - {target.name for target in targets})
    return {host: Outcome(host, "unreachable", why) for host in left}


def _shown(outcomes: Mapping[str, Outcome], stream: TextIO, output_format: str, run: str | None) -> int:
    """Print what was undone, what was refused and what failed. Return the exit code."""
    if output_format == "json":
        stream.write(audit.text(documents_apply.rolled_back(run, outcomes)))
    else:
        apply.print_rollback(stream, outcomes, run)
    lost = any(outcome.state == "unreachable" for outcome in outcomes.values())
    wrong = [
        outcome
        for outcome in outcomes.values()
        if outcome.state not in ("ok", "unreachable") or outcome.gathered("problems") or outcome.gathered("refused")
    ]
    return NOT_REACHED if wrong else INCOMPLETE if lost else OK

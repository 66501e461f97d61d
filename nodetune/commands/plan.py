"""`nodetune plan`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune import plan as planning
from nodetune import workflow
from nodetune.choice import Choice, Planning
from nodetune.commands import _options, _run
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, OK
from nodetune.plan import Built
from nodetune.saved import Saved
from nodetune.workflow import Reach


@click.command("plan")
@_options.hosts
@_options.via
@_options.saved_facts
@_options.selection
@click.option("--files", is_flag=True, help="Show every file whole, as it would be written.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the same changes there, as plain files and as an Ansible role.",
)
@_options.output_format
@_options.output
def command(
    facts_path: Path | None, files: bool, export: Path | None, output_format: str, output: Path | None, **options: Any
) -> int:
    """Show what would be set, from what, where, and how disruptive it is. Changes nothing."""
    reach = _options.reach(options)
    results, built = _built(_probed(facts_path, reach, _options.choice(**options)))
    steps = planning.plan(results)
    if export:
        from nodetune import export as exporting

        click.echo(exporting.write(export, built), err=True)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            from nodetune.report import data

            stream.write(data.text(data.plan(steps, planning.by_hand(results), results, built)))
        else:
            from nodetune.report import plan_text

            plan_text.print_plan(stream, steps, planning.by_hand(results), results, built, files=files)
    return OK if all(result.state == "ok" for result in results) else INCOMPLETE


def _probed(facts_path: Path | None, reach: Reach, choice: Choice) -> list[HostResult]:
    """Hosts or saved facts, judged, with their facts, in the order of their names."""
    wide = Planning(choice.profiles, choice.site, choice.select, choice.ignore)
    if facts_path is None:
        return _run.with_facts(reach.targets(), wide, reach)
    wide.facts()  # a selection that names nothing must not read as a plan with nothing to do
    judge, saved = workflow.Judge(wide), workflow.saved_facts(Saved(facts_path, reach.inventory, reach.limit))
    return [replace(judge.result(each.facts), facts=each.facts) if each.facts else each for each in saved]


def _built(probed: Iterable[HostResult]) -> tuple[list[HostResult], dict[str, Built]]:
    """The results, and how their steps would be carried out. Facts are let go once that is known."""
    results: list[HostResult] = []
    built: dict[str, Built] = {}
    for each in probed:
        if each.facts:
            built[each.host] = planning.build(planning.plan([each]), each.facts)
        results.append(replace(each, facts=None))
    return results, built

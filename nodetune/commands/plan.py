"""`nodetune plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune import plan as planning
from nodetune.commands import _options, _run
from nodetune.outcome import INCOMPLETE, OK


@click.command("plan")
@_options.hosts
@_options.saved_facts
@_options.selection
@_options.output_format
@_options.output
def command(facts_path: Path | None, output_format: str, output: Path | None, **options: Any) -> int:
    """Show what would be set, from what, where, and how disruptive it is. Changes nothing."""
    reach = _options.reach(options)
    results = _run.results(facts_path, reach, _options.choice(**options))
    steps = planning.plan(results)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            from nodetune.report import data

            stream.write(data.text(data.plan(steps, planning.by_hand(results), results)))
        else:
            from nodetune.report import plan_text

            plan_text.print_plan(stream, steps, planning.by_hand(results), results)
    return OK if all(result.state == "ok" for result in results) else INCOMPLETE

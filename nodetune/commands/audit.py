"""`nodetune audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune.commands import _options, _run
from nodetune.outcome import exit_code, summarise


@click.command("audit")
@_options.hosts
@_options.saved_facts
@_options.selection
@click.option(
    "--by", "by", type=click.Choice(["finding", "host"]), default="finding", show_default=True, help="Group the report."
)
@_options.fail_on
@_options.output_format
@_options.output
def command(
    facts_path: Path | None, by: str, fail_on: str, output_format: str, output: Path | None, **options: Any
) -> int:
    """Audit hosts: what is wrong, why it matters, what to type next.

    \b
    nodetune audit                              this machine
    nodetune audit -i prod -l 'gpu[001-064]'    hosts of an inventory
    nodetune audit --facts node.json            saved facts; no host is touched

    Nothing is changed on any host. Exit code: 0 compliant, 1 findings, 2 usage, 3 incomplete.
    """
    reach, site = _options.reach(options), options["site"]
    choice = _options.choice(**options)
    results = _run.results(facts_path, reach, choice)
    asked = _options.as_typed(reach, facts_path, choice, site)
    with _run.output_stream(output) as stream:
        _run.print_audit(results, output_format, stream, by_host=by == "host", asked=asked)
    return exit_code(summarise(results), fail_on)

"""`nodetune facts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nodetune import factfile, workflow
from nodetune.commands import _options, _run
from nodetune.outcome import INCOMPLETE, OK


@click.command("facts")
@_options.hosts
@_options.selection
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write one file a host there. Without it: standard output.",
)
@click.option("--anonymous", is_flag=True, help="Leave out serial numbers, UUIDs, addresses and host names.")
def command(output: Path | None, anonymous: bool, **options: Any) -> int:
    """Collect the facts of hosts and save them, for `nodetune audit --facts` anywhere."""
    reach = _options.reach(options)
    choice = _options.choice(**options)
    results = _run.probed(reach, choice)
    if output:
        output.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for result in workflow.by_name(results):
        if result.facts is None:
            click.echo(f"{result.host}: {result.state}: {result.message}", err=True)
            continue
        facts = factfile.anonymous(result.facts) if anonymous else result.facts
        if output is None:
            click.echo(factfile.dump(facts), nl=False)
            continue
        name = factfile.file_name(facts.host, taken)
        taken.add(name)
        with _run.output_stream(output / name) as stream:
            stream.write(factfile.dump(facts))
    if output:
        click.echo(f"{len(taken)} fact files in {output}", err=True)
    return OK if all(result.facts for result in results) else INCOMPLETE

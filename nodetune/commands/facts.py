"""`nodetune facts`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune import factfile, show, whole
from nodetune.commands import _options, _run
from nodetune.model import HostResult
from nodetune.outcome import INCOMPLETE, OK


def _folder(_context: click.Context, _parameter: click.Parameter, output: Path | None) -> Path | None:
    if output and output.suffix == ".json":
        raise click.BadParameter(
            f"{output} would be a folder, with a file for each host; one host: nodetune facts > {output}"
        )
    return output


@click.command("facts")
@_options.hosts
@_options.via
@_options.selection
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_folder,
    metavar="DIR",
    help="Write one file a host there. Without it: standard output.",
)
@click.option("--anonymous", is_flag=True, help="Leave out serial numbers, UUIDs, addresses and host names.")
def command(output: Path | None, anonymous: bool, **options: Any) -> int:
    """Collect the facts of hosts and save them, for `nodetune audit --facts` anywhere."""
    reach = _options.reach(options)
    choice = _options.choice(**options)
    saved = Saved(output, anonymous)
    results = _run.probed(reach, choice, saved.take)
    for result in results:
        if result.state != "ok":
            click.echo(f"{result.host}: {result.state}: {result.message}", err=True)
        elif result.facts:
            click.echo(factfile.dump(result.facts), nl=False)
    if output:
        click.echo(f"{show.count(len(saved.names), 'fact file')} in {output}", err=True)
    return OK if all(result.state == "ok" for result in results) else INCOMPLETE


class Saved:
    """Writes the facts of each host as it answers: what came before a run was stopped is there, and memory stays small."""

    def __init__(self, folder: Path | None, anonymous: bool) -> None:
        self._folder, self._anonymous = folder, anonymous
        self.names: set[str] = set()
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def take(self, result: HostResult) -> HostResult:
        """The result, without its facts where they have been written. Raises OSError."""
        if result.facts is None:
            return result
        facts = factfile.anonymous(result.facts) if self._anonymous else result.facts
        if self._folder is None:
            return replace(result, facts=facts)
        name = factfile.file_name(facts.host, self.names)
        self.names.add(name)
        whole.write(self._folder / name, factfile.dump(facts))
        return replace(result, facts=None)

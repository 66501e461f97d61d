"""`nodetune facts`."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from nodetune.api.model import HostResult
from nodetune.audit import run
from nodetune.audit.request import CollectRequest
from nodetune.cli import options as cli_options
from nodetune.cli import proposed_options, requests, verbosity
from nodetune.cli.terminal import Terminal
from nodetune.facts import document
from nodetune.foundation import file_io, paths, text
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.report.text import host_names


def _folder(_context: click.Context, _parameter: click.Parameter, output: Path | None) -> Path | None:
    if output and output.suffix == ".json":
        raise click.BadParameter(
            f"{output} would be a folder with one file per host; for one host: nodetune facts > {output}"
        )
    return None if output == Path("-") else output


@requests.command("facts", CollectRequest)
@cli_options.hosts_or_pods
@cli_options.selection
@click.option(
    "-o",
    "--output",
    **cli_options.FOLDER,
    callback=_folder,
    help="Folder to write, with one file per host. Default: standard output.",
)
@click.option("--anonymous", is_flag=True, help="Omit serial numbers, UUIDs, addresses and host names.")
@verbosity.progress_option
def command(request: CollectRequest, output: Path | None, anonymous: bool) -> int:
    """Collect facts of hosts for `nodetune audit --facts`."""
    saved = Saved(output, anonymous)
    results = run.probed(request.connection, request.selection, saved.take, Terminal())
    for result in results:
        if result.facts:
            click.echo(document.dump(result.facts), nl=False)
    _tell_lost(results, proposed_options.text(request.connection, None, request.selection))
    if output:
        verbosity.note(f"{text.count(len(saved.names), 'fact file')} in {output}")
    return OK if all(result.state == "ok" for result in results) else INCOMPLETE


def _tell_lost(results: Iterable[HostResult], asked: str) -> None:
    """Say which hosts were not reached and why, those with one reason on one line."""
    lost = ((each.state, each.host, each.message) for each in results if each.state != "ok")
    for state, found in host_names.causes(lost).items():
        for why, hosts in found:
            again = f": nodetune facts {asked} {host_names.ACCEPT}" if why == host_names.KEYS else ""
            told = f"{host_names.fold(hosts)}: {state}: {why}{again}"
            click.echo(paths.as_typed(told), err=True)


class Saved:
    """Writes the facts of each host as it answers: what came before a run was stopped is there, and memory stays small."""

    def __init__(self, folder: Path | None, anonymous: bool) -> None:
        self._folder, self._anonymous = folder, anonymous
        self.names: set[str] = set()
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def take(self, result: HostResult) -> HostResult:
        """Return the result, without its facts if they have been written. Raise OSError."""
        if result.facts is None:
            return result
        facts = document.anonymous(result.facts) if self._anonymous else result.facts
        if self._folder is None:
            return replace(result, facts=facts)
        name = document.file_name(facts.host, self.names)
        self.names.add(name)
        file_io.write(self._folder / name, document.dump(facts), file_io.OWN)
        return replace(result, facts=None)

"""`nodetune readmit`."""

from pathlib import Path

import click

from nodetune.cli import change_options, host_options, measuring_options, requests, settings, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _apply
from nodetune.cli.terminal import Terminal
from nodetune.foundation import file_io, json_document, text
from nodetune.provision.readmit.request import ReadmitRequest


def _names(_context: click.Context, _parameter: click.Parameter, typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in lists with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for each in typed for name in each.split(",") if name.strip()))


_files = cli_options.stack(
    click.option(
        "--before", **cli_options.FILE, help="Facts of the host from before the repair, to name exchanged parts."
    ),
    click.option("--baseline", **cli_options.FILE, help="Baseline of this site, which the figures have to reach."),
    click.option(
        "--evidence", **cli_options.FILE, help="Write the evidence to this file. Default: HOST-readmit-TIME.tar.gz."
    ),
    click.option("--key", **cli_options.FILE, help="Sign the evidence with this SSH key (ssh-keygen -Y)."),
)


@requests.command("readmit", ReadmitRequest)
@click.argument("host")
@host_options.one_host
@cli_options.judging
@_files
@measuring_options.only("Measure only this, and the load, instead of the quick suite. May be repeated.")
@measuring_options.load_seconds(ReadmitRequest)
@click.option(
    "--with",
    "neighbours",
    multiple=True,
    callback=_names,
    metavar="HOSTS",
    help="Good hosts to compare it with (find-slow); none: compare it with nobody. Default: the two nearest idle ones.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done; do nothing.")
@change_options.agree
@cli_options.history
@cli_options.notify
@cli_options.printed_format
@verbosity.progress_option
def command(request: ReadmitRequest, dry_run: bool, yes: bool, notify: str, output_format: str) -> int:
    """Prove that a repaired host is well, and resume it.

    \b
    nodetune readmit gpu017 -i prod -b --before evidence/gpu017.json --dry-run
    nodetune readmit gpu017 -i prod -b --before evidence/gpu017.json --key ~/.ssh/id_ed25519

    Audits the host, compares serial numbers, measures under load, searches for slow parts with two neighbours, audits
    again, and resumes the node if Slurm's drain is provably the guard's. Otherwise it lists what is missing.
    Exit code: 0 nothing missing, 1 findings or parts gone, 2 usage, 3 unknown or not measured, 4 the drain is not the
    guard's, 5 below target.
    """
    from nodetune.provision.readmit import document, preparation, run
    from nodetune.provision.readmit.readmission import Readmission

    settings.announce()
    show = Terminal()
    if request.evidence:
        file_io.check(request.evidence)
    prepared = preparation.prepare(request, show)
    if dry_run:
        click.echo(document.plan(prepared), nl=False)
        return 0
    near = f" with {', '.join(prepared.neighbours)}" if prepared.neighbours else ""
    load = text.span(request.load_seconds)
    _apply.confirm(
        f"Measure {text.plain(request.host)} under load for {load}{near}, and resume it if all is well?", yes
    )
    path: list[Path] = []

    def keep(found: Readmission) -> None:
        path[:] = [document.evidence_of(request, found.began)]
        document.keep(found, request, path[0])

    found = run.carry_out(prepared, show, keep)
    if output_format == "json":
        click.echo(json_document.text(document.document(found)), nl=False)
    else:
        click.echo(document.page(found), nl=False)
    verbosity.note(f"evidence written to {path[0]}")
    if notify:
        from nodetune.cli import receivers

        receivers.tell(notify, found.concluded, "readmit")
    return found.code

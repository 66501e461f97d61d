"""`nodetune report`."""

from pathlib import Path

import click

from nodetune.cli import change_options, host_options, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.terminal import Terminal
from nodetune.facts import document
from nodetune.foundation import file_io, sealed
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.report.support.request import SupportRequest


@requests.command("report", SupportRequest)
@click.argument("host")
@host_options.one_host
@cli_options.saved_facts
@click.option(
    "--measurements",
    **cli_options.FILE,
    multiple=True,
    help="Add figures of nodetune verify --format json. May be repeated.",
)
@cli_options.history
@change_options.runs_folder
@click.option("--nameless", is_flag=True, help="Leave the host's name out.")
@click.option("--bundle", **cli_options.FILE, help="Write the bundle to this file. Default: HOST-report.tar.gz.")
@click.option("--key", **cli_options.FILE, help="Sign the bundle with this SSH key (ssh-keygen -Y).")
@verbosity.progress_option
def command(request: SupportRequest) -> int:
    """Bundle what a vendor's support asks for, without secrets.

    \b
    nodetune report gpu017 -i prod -b --history fleet.db
    nodetune report gpu017 --facts evidence/gpu017.json --measurements gpu017-verify.json

    Serial numbers, firmware, Xids, counters, findings about hardware, figures, the past of 90 days, and the runs that
    changed the host; first a page of text. Facts about software, users and jobs stay out. Look at it before you send it.
    Exit code: 0 done, 2 usage, 3 the host could not be read: the bundle holds what is known without it.
    """
    from nodetune.report.support import gather, page

    name = gather.NAMELESS if request.nameless else request.host
    path = request.bundle or Path(f"{document.file_name(name, set()).removesuffix('.json')}-report.tar.gz")
    file_io.check(path)
    known = gather.gather(request, Terminal())
    first = page.page(known)
    sealed.write(path, gather.files(known, first, request.host), request.key)
    click.echo(first, nl=False)
    verbosity.note(f"written to {path}")
    return INCOMPLETE if known.problem else OK

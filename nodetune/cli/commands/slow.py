"""`nodetune slow`."""

import time
from pathlib import Path

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests, verbosity
from nodetune.cli.requests import of
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document
from nodetune.jobs.late_ranks.request import SlowRequest


@requests.command("slow", SlowRequest)
@click.option(
    "--inspector",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR|FILE",
    help="Files of NCCL's Inspector, of one or many jobs.",
)
@click.option("--ras", **of(SlowRequest, "ras"), metavar="HOST[:PORT]", help="Ask NCCL's RAS service of a running job.")
@click.option("--pause", **of(SlowRequest, "pause"), metavar="SECONDS", help="Between the two questions of --ras.")
@cli_options.history
@cli_options.notify
@cli_options.format_option(["text", "json"])
@cli_options.output
def command(request: SlowRequest, output_format: str, output: Path | None) -> int:
    """Name the rank or host that the others of a job wait for.

    \b
    nodetune slow --inspector nccl-inspector-812/   late ranks of a job, from NCCL's Inspector
    nodetune slow --inspector /shared/inspector     of all jobs: does it follow the host, or the program?
    nodetune slow --ras localhost                   ranks that are missing in a job that hangs (on one of its nodes)

    Touches no job.
    Exit code: 0 none, 1 a rank is late, missing or behind, 2 usage, 3 not judged, or no answer.
    """
    from nodetune.history import keeping
    from nodetune.jobs.late_ranks import document, run
    from nodetune.jobs.late_ranks.conclude import concluded
    from nodetune.report.text import late_ranks as report

    found = run.run(request)
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(document.document(found)))
        else:
            report.print_slow(stream, found)
        if output:
            verbosity.note(report.summary(found))
    known = concluded(found, int(time.time()))
    keeping.keep(request.history, Terminal(), concluded=known)
    if request.notify:
        from nodetune.cli import receivers

        receivers.tell(request.notify, known, "ras" if request.ras else "late-ranks")
    return run.exit_code(found)

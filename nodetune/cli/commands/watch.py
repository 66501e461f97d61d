"""`nodetune watch`."""

import time
from pathlib import Path

import click

from nodetune.cli import options as cli_options
from nodetune.cli import requests, verbosity
from nodetune.cli.requests import of
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document
from nodetune.jobs.watch.request import WatchRequest


@requests.command("watch", WatchRequest)
@cli_options.hosts_or_nodes
@click.option("--seconds", **of(WatchRequest, "seconds"), metavar="N", help="Length of the watch.")
@cli_options.saved_facts
@click.option("--save", **cli_options.FOLDER, help="Save what the hosts report in this folder, for --facts.")
@cli_options.history
@cli_options.notify
@cli_options.format_option(["text", "json", "prometheus"])
@cli_options.output
@verbosity.progress_option
def command(request: WatchRequest, output_format: str, output: Path | None) -> int:
    """Say what the jobs on busy GPUs wait for, without touching them.

    \b
    nodetune watch -i prod -b --seconds 30      which jobs waste which GPUs, and why
    nodetune watch -i prod -b -o watch.prom     metrics for Prometheus
    nodetune watch --facts watched/             judge saved reports again

    Reads counters of GPUs (NVML's GPM, without DCGM), processes and hosts, and changes nothing. Other users' processes
    are visible to root alone (-b).
    Exit code: 0 every job uses its GPUs, 1 some do not, 2 usage, 3 a host or GPU could not be judged, or no host has GPUs.
    """
    from nodetune.jobs.watch import document, run
    from nodetune.jobs.watch.conclude import SOURCE, concluded
    from nodetune.report import watch_metrics
    from nodetune.report.text import watch as report

    watched = run.run(request, Terminal())
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(document.document(watched)))
        elif output_format == "prometheus":
            watch_metrics.write(watched, stream)
        else:
            report.print_watch(stream, watched)
        if output:
            verbosity.note(report.summary(watched))
    if request.notify:
        from nodetune.cli import receivers

        receivers.tell(request.notify, concluded(watched, {}, int(time.time())), SOURCE)
    return run.exit_code(watched)

"""Shared parts of the commands of `nodetune tune`: options, the run, and the result."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune.cli import measuring_options, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.requests import stack
from nodetune.cli.terminal import Terminal
from nodetune.foundation import json_document, text
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.tune import run as tuning
from nodetune.tune import study
from nodetune.tune.model import Bench
from nodetune.tune.request import StudyRequest

options = stack(
    cli_options.output,
    cli_options.format_option(["text", "html", "json", "csv", "prometheus"]),
    click.option("--resume", is_flag=True, help="Resume an interrupted tuning with its trials."),
    click.option(
        "--save",
        **cli_options.FILE,
        help="Result file. Default: tuning-SUBJECT.json. FILE.trials keeps the trials until the result is written.",
    ),
    measuring_options.budget(StudyRequest.budget),
    cli_options.history,
    verbosity.progress_option,
)
"""The options that every subject has."""


def run(
    request: StudyRequest,
    subject: str,
    make: Callable[[], Bench],
    connection: ConnectionOptions,
    output_format: str,
    output: Path | None,
) -> int:
    """Tune and print the result. Return the exit code."""
    tuned = tuning.run(request, subject, make, Terminal())
    if tuned.document is None:
        click.echo(f"nodetune: {tuned.problem}", err=True)
    else:
        print_result(tuned.document, output_format, output)
    if not tuned.decided and tuned.count:
        kept = f"{text.count(tuned.count, 'trial')} kept in {tuned.trials}"
        click.echo(f"no result yet: {kept}: use --resume to continue", err=True)
    if tuned.document and tuned.document["state"] == study.ACCEPTED:
        _say_next(tuned.document, tuned.site, connection)
    return tuned.code


def print_result(found: Mapping[str, Any], output_format: str, output: Path | None) -> None:
    """Print the document of a tuning."""
    with cli_options.writing(output) as stream:
        if output_format == "json":
            stream.write(json_document.text(dict(found)))
        elif output_format == "site":
            tuning.write_site(stream, found)
        elif output_format in ("csv", "prometheus"):
            from nodetune.report import tuning_rows

            write = tuning_rows.write_csv if output_format == "csv" else tuning_rows.write_prometheus
            write(found, stream)
        elif output_format == "html":
            from nodetune.report.html import tuning as page

            page.write(stream, found)
        else:
            from nodetune.report.text import tuning as lines

            lines.print_tuning(stream, found)


def _say_next(found: Mapping[str, Any], site: Path | None, connection: ConnectionOptions) -> None:
    """Say which commands carry out the proposal."""
    if site is None:
        click.echo("This is not a host setting: pass it to your jobs.", err=True)
    elif not verbosity.is_quiet():
        words = shlex.join([*replace(connection, transport="auto").words, "--site", str(site)])
        hosts = " ".join(str(host) for host in found["provenance"].get("hosts", ()))
        click.echo(f"\nproposal: {site} (add it to the site file of these hosts: {text.plain(hosts, 200)})", err=True)
        verbosity.note(f"nodetune plan {words}     what it changes; then apply, verify, and rollback if needed")

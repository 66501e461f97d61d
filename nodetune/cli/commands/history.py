"""`nodetune history`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from nodetune.cli import options
from nodetune.cli.terminal import Terminal
from nodetune.foundation import text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK

if TYPE_CHECKING:
    from nodetune.history.history import History
    from nodetune.history.trends import Trend

REPAIR = "nodetune.history.repair"
SCHEMA = "nodetune.history/1"


@click.command("history")
@click.argument("host", required=False)
@click.argument("fact", default="")
@options.history
@options.notify
@click.option(
    "--since", callback=options.span, default="90d", show_default=True, metavar="TIME", help="How far back (36h, 30d)."
)
@click.option(
    "--repair",
    is_flag=False,
    flag_value="",
    expose_value=False,
    callback=lambda context, _, to: context.meta.update({REPAIR: to}),
    metavar="[FILE|URL]",
    help="Write a sound copy of a damaged history to this new file or empty database. Default: FILE.repaired.db, next to it.",
)
@options.format_option(["text", "html", "json", "csv", "prometheus"])
@options.output
def command(
    host: str | None,
    fact: str,
    history: str,
    since: int,
    notify: str,
    output_format: str,
    output: Path | None,
) -> int:
    """Show what changed on hosts and when, and what dies slowly.

    \b
    nodetune audit -i prod --history fleet.db          every audit adds a look at each host
    nodetune history --history fleet.db                trends: what grows far above its own past and its peers
    nodetune history gpu017                            one host: changes, findings, numbers (history = in nodetune.toml)
    nodetune history gpu017 gpu.nvlink_errors/GPU3     only facts whose names begin so
    nodetune history gpu017 --format html -o h.html    a page with a plot of each number
    nodetune history --format prometheus               growth of all counters in the last 24 hours
    nodetune history --format csv -o fleet.csv         all numbers; days for what is older than a week
    nodetune history --notify slack+https://…          report new trends and hosts that break too often
    nodetune history --history fleet.db --repair       a sound copy of what can be read: fleet.repaired.db

    Exit code: 0 no trend, 1 trends, 2 usage, 3 the history is damaged. 1 wins over 3.
    """
    if not history:
        raise click.UsageError("give --history FILE|URL, or history = in nodetune.toml")
    if output_format == "html" and host is None:
        raise click.UsageError("--format html is the page of one host: nodetune history HOST --format html")
    to = click.get_current_context().meta.get(REPAIR)
    if to is not None:
        return _repair(history, to or str(output or ""), host)
    from nodetune.history.history import History

    begun = time.time() - since
    found: Sequence[Trend] = ()
    with History(history, Terminal(), make=False) as known, options.writing(output) as stream:
        if output_format in ("csv", "prometheus"):
            _export(known, host, fact, begun, output_format, stream)
        elif host is None:
            found = known.trends()
            _fleet(known, found, output_format, stream)
        else:
            found = _host(known, host, fact, begun, output_format, stream)
        concluded = known.own_conclusions() if notify else None
        code = FINDINGS if found else INCOMPLETE if known.is_damaged else OK
    if concluded:
        from nodetune.cli import receivers

        receivers.tell(notify, concluded.of_host(host) if host else concluded, "history")
    return code


def _repair(place: str, to: str, host: str | None) -> int:
    """Write a sound copy, and say what was lost."""
    from nodetune.history.repair import repair

    if host:
        raise click.UsageError(
            f"--repair copies all hosts, not {text.plain(host)} alone: name a file with --repair=FILE"
        )
    click.echo(repair(place, to))
    return OK


def _fleet(known: History, found: Sequence[Trend], output_format: str, stream: TextIO) -> None:
    from nodetune.api import conclusion_json
    from nodetune.foundation import json_document
    from nodetune.history import timeline
    from nodetune.report.text import history as text_history

    hosts = known.last_looks()
    if output_format == "json":
        last = [{"name": name, "last": at} for name, at in hosts]
        told = {
            **json_document.head(SCHEMA),
            "hosts": last,
            "trends": [timeline.trend_data(each) for each in found],
            **conclusion_json.members(known.own_conclusions()),
        }
        stream.write(json_document.text(told))
        return
    text_history.print_fleet(stream, hosts, found)


def _host(known: History, host: str, fact: str, begun: float, output_format: str, stream: TextIO) -> Sequence[Trend]:
    from nodetune.api import conclusion_json
    from nodetune.foundation import json_document
    from nodetune.history import timeline
    from nodetune.report.text import history as text_history

    told = timeline.of_host(known, host, fact, begun)
    if output_format == "json":
        own = conclusion_json.members(known.own_conclusions().of_host(host))
        stream.write(json_document.text({**json_document.head(SCHEMA), **told.data(), **own}))
    elif output_format == "html":
        from nodetune.report.html import history as page

        page.write(stream, told)
    else:
        text_history.print_host(stream, told)
    return told.trends


def _export(known: History, host: str | None, fact: str, begun: float, output_format: str, stream: TextIO) -> None:
    from nodetune.history import timeline
    from nodetune.report import history_rates, rows

    if host:
        timeline.leaves_of(known, host, fact)
    if output_format == "prometheus":
        rates = known.rates(time.time(), fact)
        history_rates.write_prometheus((each for each in rates if host in (None, each.host)), stream)
        return
    every = [host] if host else known.hosts()
    told = (
        row
        for each in every
        for row in history_rates.rows(each, known.series_of(each, known.leaves(each, fact), begun))
    )
    rows.write(stream, output_format, history_rates.HEAD, told)

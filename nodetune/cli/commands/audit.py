"""`nodetune audit`."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodetune import report
from nodetune.api.model import SEVERITIES, HostResult
from nodetune.audit import run
from nodetune.audit.request import CACHE_MINUTES, AuditRequest
from nodetune.audit.summary import Summary, compliant, exit_code, summarise, totals
from nodetune.cli import options as cli_options
from nodetune.cli import proposed_options, requests, settings, verbosity
from nodetune.cli.host_options import comparing
from nodetune.cli.requests import of
from nodetune.cli.terminal import Terminal
from nodetune.facts.saved import BUNDLED

if TYPE_CHECKING:
    from nodetune.audit.scorecards import Scorecard

FEW_CHECKS = 3
"""Up to this many checks are always shown in full."""

_aging = cli_options.stack(
    click.option(
        "--cache",
        **cli_options.FOLDER,
        help="Save facts in this folder; do not probe hosts that have some there. An interrupted audit continues.",
    ),
    click.option(
        "--max-age",
        callback=cli_options.span,
        metavar="TIME",
        help=f"Maximum age of facts (90s, 30m, 2h, 1d). With older ones, --facts counts a host as unreachable (default: the limit of nodetune pull, if any), and --cache probes it again (default: {CACHE_MINUTES}m).",
    ),
)


_against = click.option(
    "--against",
    **of(AuditRequest, "against"),
    help="Report which criteria of a scorecard the hosts meet: the checklist of 180 items, nodetune's list of settings, ClusterMAX, NVIDIA's requirements for AI clouds, or NVIDIA Health Validation. Changes no exit code.",
)


def _check_format(output_format: str, about: report.About, output: Path | None, *, full: bool) -> None:
    if about.previous and output_format != "html":
        raise click.UsageError("--previous needs --format html (for other formats: nodetune diff BEFORE AFTER)")
    if full and output_format != "text":
        raise click.UsageError("--full needs --format text: other formats always have everything")
    if about.against and output_format not in report.AGAINST_FORMATS:
        raise click.UsageError("--against needs --format text, json or markdown")
    if about.measurements and output_format != "html":
        raise click.UsageError("--measurements needs --format html")
    if output_format == "html" and output is None and sys.stdout.isatty():
        raise click.UsageError("--format html is a page for a browser: add -o FILE.html")


@requests.command("audit", AuditRequest)
@cli_options.hosts_or_pods
@cli_options.saved_facts
@_aging
@cli_options.selection
@click.option(
    "--group-by",
    type=click.Choice(["finding", "host"]),
    default="finding",
    show_default=True,
    help="How to group findings in the text report.",
)
@click.option("--full", is_flag=True, help="Show everything about each finding in the text report, also low and info.")
@comparing
@_against
@cli_options.fail_on
@cli_options.audit_format
@cli_options.previous
@cli_options.measurements
@cli_options.history
@cli_options.notify
@cli_options.output
@verbosity.progress_option
def command(
    request: AuditRequest,
    group_by: str,
    full: bool,
    output_format: str,
    previous: Path | None,
    measurements: tuple[Path, ...],
    output: Path | None,
) -> int:
    """Audit hosts and explain how to fix each finding.

    \b
    nodetune audit                              this machine
    nodetune audit -i prod -l 'gpu[001-064]'    hosts of an inventory
    nodetune audit --facts node.json            saved facts; connects to no host
    nodetune audit -i prod --reference gpu001   compare with a good host
    nodetune audit -i prod --cache facts/       thousands of hosts: can be continued
    nodetune audit -i prod --against clustermax which criteria of a rating the hosts meet

    With several hosts, the audit also compares versions, settings, links and counters between hosts that should be
    identical.

    Changes nothing on any host. Exit code: 0 nothing at or above --fail-on, 1 findings, 2 usage,
    3 incomplete.
    """
    against = _scorecard(request.against)
    selection = replace(run.compared(request), against=against)
    asked = proposed_options.text(request.connection, request.facts_path, selection)
    judged = proposed_options.judged(selection)
    known = {check.id: check for check in selection.judged()}
    selected = proposed_options.selected(selection)
    about = report.About(
        known,
        asked,
        request.fail_on,
        previous,
        measurements,
        group_by == "host",
        judged,
        selected,
        saved=request.facts_path is not None,
        compared=shlex.join(request.compared),
        full=full or (len(known) <= FEW_CHECKS and not request.against),
        against=against,
        site=selection.site,
        validate=proposed_options.validate(request.connection, selection),
    )
    _check_format(output_format, about, output, full=full)
    write = report.writer(output_format, about)
    results = run.run(request, selection, Terminal())
    summary = summarise(results)
    with cli_options.writing(output) as stream:
        write(results, stream)
        if output:
            verbosity.note(_count(summary, results))
    bundled = request.facts_path is not None and request.facts_path.parent == BUNDLED
    if not (selected or bundled):
        _record(asked, judged, summary, results)
    if request.notify and not (bundled and settings.is_implicit(click.get_current_context(), "notify")):
        from nodetune.audit.conclude import concluded
        from nodetune.cli import receivers

        receivers.tell(request.notify, concluded(results, int(time.time())), f"{judged} {selected}", request.fail_on)
    return exit_code(summary, request.fail_on)


def _scorecard(name: str | None) -> Scorecard | None:
    if not name:
        return None
    from nodetune.audit import scorecards

    return scorecards.read(name)


def _record(asked: str, judged: str, summary: Summary, results: Sequence[HostResult]) -> None:
    """Keep what the overview says about this audit, unless it was interrupted."""
    from nodetune.cli import last_results

    if any(result.state == "interrupted" for result in results):
        return
    failing = [(found, result.host) for result in results for found in result.failing()]
    worst = max(failing, key=lambda each: SEVERITIES.index(each[0].severity), default=None)
    told = {
        "hosts": summary.hosts,
        "lost": summary.hosts - summary.reached,
        "failing": summary.failing,
        "fixable": any(found.fix for found, _ in failing),
        "worst": worst[0].check if worst else "",
        "worst_host": worst[1] if worst else "",
        "judged": judged,
    }
    last_results.keep("audit", asked, told)


def _count(summary: Summary, results: Sequence[HostResult]) -> str:
    """Return the last line of a report, for those whose report goes to a file."""
    parts = totals(summary, sum(map(compliant, results)))
    return "".join(part if isinstance(part, str) else part[0] for part in parts)

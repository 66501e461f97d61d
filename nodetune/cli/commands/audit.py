"""`nodetune audit`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from nodetune import report
from nodetune.api.model import SEVERITIES, HostResult
from nodetune.audit import auditor
from nodetune.audit.selection import Selection, comparing
from nodetune.audit.summary import Summary, exit_code, summarise
from nodetune.checks import fleet_comparisons
from nodetune.cli import as_typed, renamed, verbosity
from nodetune.cli import options as cli_options
from nodetune.facts.saved import BUNDLED, Rules, Saved
from nodetune.hosts.target import ConnectionOptions

CACHE_MINUTES = 60


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select the hosts to compare with."""
    for option in (
        renamed.option("--no-compare", was="--no-fleet", is_flag=True, help="Do not compare hosts with each other."),
        click.option(
            "--reference",
            metavar="HOST|FILE",
            help="Compare all hosts with this host, or with the host in this fact file, instead of with the majority.",
        ),
        click.option(
            "--cohort",
            default=fleet_comparisons.GPU,
            show_default=True,
            metavar="gpu|inventory|all|FACT",
            help="Compare hosts that have the same GPUs, inventory groups, or value of a fact.",
        ),
    ):
        function = option(function)
    return function


def _compared(choice: Selection, cohort: str, reference: str | None, no_compare: bool) -> Selection:
    if not no_compare:
        return comparing(choice, cohort, reference)
    if reference:
        raise click.UsageError("--reference cannot be used with --no-compare")
    return choice


def _aging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the fact cache."""
    for option in (
        click.option(
            "--max-age",
            callback=cli_options.span,
            metavar="TIME",
            help="Maximum age of facts (90s, 30m, 2h, 1d). With --facts, a host with older facts counts as not reached;"
            " default: the limit in facts from nodetune pull, none for others. With --cache, a host with older facts is"
            f" probed again; default: {CACHE_MINUTES}m.",
        ),
        renamed.option(
            "--cache",
            was="--keep",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Save the facts of each host in this folder, and do not probe hosts whose facts are there. An"
            " interrupted audit continues where it stopped.",
        ),
    ):
        function = option(function)
    return function


def _check_cache(cache: Path | None, max_age: int | None, facts_path: Path | None) -> None:
    if cache and facts_path:
        raise click.UsageError("--cache cannot be used with --facts, which probes no host")
    if max_age and not (cache or facts_path):
        raise click.UsageError("--max-age needs --facts or --cache")


def _check_format(output_format: str, about: report.About, output: Path | None) -> None:
    if about.previous and output_format != "html":
        raise click.UsageError("--previous needs --format html (for other formats: nodetune diff BEFORE AFTER)")
    if about.measurements and output_format != "html":
        raise click.UsageError("--measurements needs --format html")
    if output_format == "html" and output is None and sys.stdout.isatty():
        raise click.UsageError("--format html is a page for a browser: add -o FILE.html")


def _saved(path: Path, reach: ConnectionOptions, choice: Selection, max_age: int | None) -> list[HostResult]:
    """Audit saved facts."""
    rules = Rules(max_age, named=reach.inventory is not None)
    saved = Saved(path, reach.inventory, reach.limit, reach.vault)
    judged = (each for each in auditor.audit_files(saved, choice, rules) if reach.wants(each.host))
    if not saved.is_folder:
        return auditor.by_name(judged)
    from nodetune.cli import progress  # one file needs none

    with closing(progress.counted("audit", judged, sum(map(len, saved.files())))) as results:
        return auditor.by_name(results)


def _hosts(reach: ConnectionOptions, choice: Selection, cache: Path | None, max_age: int | None) -> list[HostResult]:
    """Audit hosts."""
    from nodetune.cli.commands import _run  # inventories, SSH and Slurm: saved facts need none of them

    kept = _run.fact_cache(cache, max_age or CACHE_MINUTES * 60, reach.transport) if cache else None
    return _run.audited(reach, choice, kept)


@click.command("audit")
@cli_options.hosts_or_nodes
@cli_options.saved_facts
@_aging
@cli_options.selection
@renamed.alias("--by", "--group-by")
@click.option(
    "--group-by",
    cls=renamed.Split,
    to="--cohort",
    moved=lambda value: value in fleet_comparisons.WAYS or "." in value,
    type=click.Choice(["finding", "host"]),
    default="finding",
    show_default=True,
    help="How to group findings in the text report.",
)
@_comparing
@cli_options.fail_on
@cli_options.audit_format
@cli_options.previous
@cli_options.measurements
@cli_options.output
@verbosity.progress_option
def command(
    facts_path: Path | None,
    group_by: str,
    fail_on: str,
    output_format: str,
    previous: Path | None,
    measurements: tuple[Path, ...],
    output: Path | None,
    **options: Any,
) -> int:
    """Audit hosts and explain how to fix each finding.

    \b
    nodetune audit                              this machine
    nodetune audit -i prod -l 'gpu[001-064]'    hosts of an inventory
    nodetune audit --facts node.json            saved facts; connects to no host
    nodetune audit -i prod --reference gpu001   compare with a host that is known to be good
    nodetune audit -i prod --cache facts/       thousands of hosts: can be interrupted and continued

    With several hosts, the audit also compares versions, settings, links and counters between hosts that should be
    identical.

    Changes nothing on any host. Exit code: 0 compliant, 1 findings, 2 usage, 3 incomplete.
    """
    max_age: int | None = options.pop("max_age")
    cache, reach, site = options.pop("cache"), cli_options.reach(options), options["site"]
    _check_cache(cache, max_age, facts_path)
    compare = {name: options.pop(name) for name in ("cohort", "reference", "no_compare")}
    choice = _compared(cli_options.choice(**options), **compare)
    asked = as_typed.text(reach, facts_path, choice.profiles, site)
    known = {check.id: check for check in choice.judged()}
    judged = as_typed.judged(choice.profiles, site)
    selected = as_typed.selected(choice.select, choice.ignore)
    about = report.About(known, asked, fail_on, previous, measurements, group_by == "host", judged, selected)
    _check_format(output_format, about, output)
    write = report.MAKERS[output_format](about)
    found = _saved(facts_path, reach, choice, max_age) if facts_path else _hosts(reach, choice, cache, max_age)
    results = auditor.compared(found, choice)
    summary = summarise(results)
    with cli_options.writing(output) as stream:
        write(results, stream)
        if output:
            verbosity.note(_count(summary, results))
    if not (selected or (facts_path and facts_path.parent == BUNDLED)):
        _record(asked, judged, summary, results)
    return exit_code(summary, fail_on)


def _record(asked: str, judged: str, summary: Summary, results: Sequence[HostResult]) -> None:
    """Keep what the overview says about this audit, unless it was interrupted."""
    from nodetune.cli import latest

    if any(result.state == "interrupted" for result in results):
        return
    failing = [(found, result.host) for result in results for found in result.failing()]
    worst = max(failing, key=lambda each: SEVERITIES.index(each[0].severity), default=None)
    latest.keep(
        "audit",
        asked,
        hosts=summary.hosts,
        lost=summary.hosts - summary.reached,
        failing=summary.failing,
        fixable=any(found.fix for found, _ in failing),
        worst=worst[0].check if worst else "",
        worst_host=worst[1] if worst else "",
        judged=judged,
    )


def _count(summary: Summary, results: Sequence[HostResult]) -> str:
    """Return the last line of a report, for those whose report goes to a file."""
    from nodetune.report.text import finding_groups

    parts = finding_groups.totals(summary, sum(map(finding_groups.compliant, results)))
    return "".join(part if isinstance(part, str) else part[0] for part in parts)

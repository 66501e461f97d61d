"""`nodetune audit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nodetune import fleet, workflow
from nodetune.choice import Choice, comparing
from nodetune.commands import _options, _reports, _run
from nodetune.kept import Kept
from nodetune.outcome import exit_code, summarise

KEPT_MINUTES = 60


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say whom a host is compared with."""
    for option in (
        click.option("--no-fleet", is_flag=True, help="Do not compare hosts with each other."),
        click.option(
            "--reference",
            metavar="HOST|FILE",
            help="Compare with this host, or the host of this fact file, instead of with most of them.",
        ),
        click.option(
            "--group-by",
            default=fleet.GPU,
            show_default=True,
            metavar="gpu|inventory|all|FACT",
            help="Compare hosts with those of the same GPUs, inventory groups, or value of a fact.",
        ),
    ):
        function = option(function)
    return function


def _compared(choice: Choice, group_by: str, reference: str | None, no_fleet: bool) -> Choice:
    if not no_fleet:
        return comparing(choice, group_by, reference)
    if reference:
        raise click.UsageError("--reference compares hosts, which --no-fleet leaves out: give one of them")
    return choice


def _aging(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where facts are kept, and for how long they stand for a host."""
    for option in (
        click.option(
            "--max-age",
            callback=_options.span,
            metavar="TIME",
            help="How old facts may be (90s, 30m, 2h, 1d). With --facts: a host whose facts are older was not reached;"
            " default: as facts that nodes renew say themselves (nodetune pull), others at any age. With --keep:"
            f" a host whose facts are older is asked again; default: {KEPT_MINUTES}m.",
        ),
        click.option(
            "--keep",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Keep each host's facts there as it answers, and do not ask hosts again whose facts are there: an"
            " audit that was interrupted goes on where it was.",
        ),
    ):
        function = option(function)
    return function


def _kept(keep: Path | None, max_age: int | None, facts_path: Path | None, via: str) -> Kept | None:
    """Where facts are kept. Raises click.UsageError, OSError."""
    if keep and facts_path:
        raise click.UsageError("--facts asks no host, so that there is nothing to --keep: give one of them")
    if max_age and not (keep or facts_path):
        raise click.UsageError("--max-age is about saved facts: give --facts or --keep")
    if not keep:
        return None
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Kept(keep, max_age or KEPT_MINUTES * 60, via)


@click.command("audit")
@_options.hosts
@_options.via
@_options.saved_facts
@_aging
@_options.selection
@click.option(
    "--by", "by", type=click.Choice(["finding", "host"]), default="finding", show_default=True, help="Group the report."
)
@_comparing
@_options.fail_on
@_options.audit_format
@_options.since
@_options.measured
@_options.output
def command(
    facts_path: Path | None,
    by: str,
    fail_on: str,
    output_format: str,
    since: Path | None,
    measured: tuple[Path, ...],
    output: Path | None,
    **options: Any,
) -> int:
    """Audit hosts: what is wrong, why it matters, what to type next.

    \b
    nodetune audit                              this machine
    nodetune audit -i prod -l 'gpu[001-064]'    hosts of an inventory
    nodetune audit --facts node.json            saved facts; no host is touched
    nodetune audit -i prod --reference gpu001   what is unlike on that host, which is known to be good
    nodetune audit -i prod --keep facts/        thousands of hosts: stopped, it goes on where it was

    Several hosts are compared with each other too: versions, settings, links and counters that differ between hosts
    that should be alike.

    Nothing is changed on any host. Exit code: 0 compliant, 1 findings, 2 usage, 3 incomplete.
    """
    max_age: int | None = options.pop("max_age")
    keep, reach, site = options.pop("keep"), _options.reach(options), options["site"]
    reach = replace(reach, kept=_kept(keep, max_age, facts_path, reach.via))
    compare = {name: options.pop(name) for name in ("group_by", "reference", "no_fleet")}
    choice = _compared(_options.choice(**options), **compare)
    asked = _options.as_typed(reach, facts_path, choice, site)
    about = _reports.About({check.id: check for check in choice.judged()}, asked, fail_on, since, measured)
    write = _reports.writer(output_format, about, output)
    results = workflow.compared(_run.results(facts_path, reach, choice, max_age), choice)
    with _run.output_stream(output) as stream:
        if write:
            write(results, stream)
        else:
            _run.print_audit(results, output_format, stream, by_host=by == "host", asked=asked)
    return exit_code(summarise(results), fail_on)

"""`nodetune checks`."""

from collections.abc import Sequence

import click

from nodetune import checks
from nodetune.api.model import Check
from nodetune.audit import explain
from nodetune.audit.request import SelectionRequest
from nodetune.cli import options as cli_options
from nodetune.cli import requests
from nodetune.config import profile
from nodetune.config import site as site_files
from nodetune.foundation import text as plain_text


@requests.command("checks", SelectionRequest)
@click.argument("words", metavar="[WORD]...", nargs=-1)
@cli_options.selection
@cli_options.printed_format
def command(request: SelectionRequest, words: tuple[str, ...], output_format: str) -> None:
    """List the checks, or those about some words.

    \b
    nodetune checks                 all checks of the profile
    nodetune checks swap            checks that name swap in their id, title or setting
    nodetune checks -s memory       checks of an area
    nodetune checks -s 'gpu-*'      checks by their id

    A wide terminal (130 columns) also shows what is wanted and how it is fixed; `nodetune explain ID` always does.
    """
    choice = request.selection
    choice.validate()
    resolved = profile.resolve(profile.named(choice.profiles), site_files.for_all(choice.site))
    rows = [
        {
            "id": check.id,
            "area": check.area,
            "severity": check.severity,
            "title": check.title,
            "wanted": explain.wanted(check),
            "fix": check.remedy.kind,
            "disruption": check.remedy.disruption,
            "stability": check.stability,
            "gates": check.id in resolved.gates,
            "since": check.since,
        }
        for check in _about(words, [check for check in resolved.checks if choice.wants(check)])
    ]
    if output_format == "json":
        from nodetune.foundation import json_document

        click.echo(json_document.text({"schema": "nodetune.checks/1", "checks": rows}), nl=False)
        return
    from nodetune.report.text import catalogue

    catalogue.print_checks(rows)
    shown = plain_text.count(len(rows), "check")
    click.echo(
        f"{shown} listed; {len(resolved.checks)} are in this profile, {len(checks.load_all())} in nodetune", err=True
    )


def _about(words: Sequence[str], every: Sequence[Check]) -> Sequence[Check]:
    """Return the checks that name all words: in id, title or setting, else in what they teach. Raise UsageError."""
    short = [(check, f"{check.id} {check.area} {check.title} {check.remedy.target} {check.fact}") for check in every]
    whole = [(check, f"{check.id} {check.doc}") for check in every]
    for texts in (short, whole):
        found = [check for check, text in texts if all(word.lower() in text.lower() for word in words)]
        if found:
            return found
    near = plain_text.near(" ".join(words), [check.id for check in every])
    hint = f": did you mean {' or '.join(near)}?" if near else ""
    raise click.UsageError(f"no check of this profile matches {' and '.join(map(repr, words))}{hint}")

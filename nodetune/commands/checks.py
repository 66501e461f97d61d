"""`nodetune checks`."""

from __future__ import annotations

from typing import Any

import click

from nodetune import explain, profile
from nodetune.commands import _options


@click.command("checks")
@_options.selection
@_options.output_format
def command(output_format: str, **options: Any) -> None:
    """List the checks: what each wants, how severe its fault is, how it is fixed."""
    choice = _options.choice(**options)
    resolved = profile.resolve(profile.named(choice.profiles), choice.site)
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
        for check in resolved.checks
        if choice.wants(check)
    ]
    if output_format == "json":
        from nodetune.report import data

        click.echo(data.text({"schema": "nodetune.checks/1", "checks": rows}), nl=False)
        return
    from nodetune.report import catalogue

    catalogue.print_checks(rows)

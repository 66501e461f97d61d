"""`nodetune checks`."""

from __future__ import annotations

from typing import Any

import click

from nodetune.audit import explain
from nodetune.cli import options as cli_options
from nodetune.config import profile


@click.command("checks")
@cli_options.selection
@cli_options.output_format
def command(output_format: str, **options: Any) -> None:
    """List the checks with severity, expected value and fix."""
    choice = cli_options.choice(**options)
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
        from nodetune.documents import audit

        click.echo(audit.text({"schema": "nodetune.checks/1", "checks": rows}), nl=False)
        return
    from nodetune.report.text import catalogue

    catalogue.print_checks(rows)

"""`nodetune profile`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nodetune.api import predicates
from nodetune.cli import completion, groups
from nodetune.config import profile, site_schema
from nodetune.foundation import text


@click.group("profile", cls=groups.Group)
def command() -> None:
    """Show and validate profiles."""


@command.command("show")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.profiles)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="Include this site file.")
def show_profile(names: tuple[str, ...], site: Path | None) -> None:
    """List profiles, or show what the named ones change."""
    overlays = [profile.shipped()[name] for name in profile.named(names) if names] or list(profile.shipped().values())
    for overlay in [*overlays, *([profile.read(site)] if site else [])]:
        click.echo(f"{overlay.name}: {overlay.about}".rstrip(": "))
        for when in overlay.when:
            click.echo(f"  chosen when {when.fact} is {predicates.as_predicate(when.accept).describe(text.value)}")
        if names or site:
            for check_id, change in overlay.checks.items():
                click.echo(f"  {check_id}: {_change(change)}")
            for waiver in overlay.waivers:
                click.echo(
                    f"  waived until {waiver.until}: {waiver.id} on {waiver.hosts} ({waiver.owner}: {waiver.reason})"
                )


def _change(change: object) -> str:
    if change is False:
        return "off"
    if change is None:
        return "left untouched"
    return json.dumps({key: predicates.to_data(each) for key, each in change.items()})  # type: ignore[attr-defined]


@command.command("validate")
@click.argument("file", type=click.Path(path_type=Path))
def validate(file: Path) -> None:
    """Validate a site file; errors include the line number."""
    found = profile.read(file)
    profile.resolve(profile.named(found.profile), found)
    click.echo(
        f"{file}: {len(found.checks)} overrides, {len(found.add)} site checks, {len(found.waivers)} waivers: valid"
    )


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of profiles and site files."""
    click.echo(site_schema.schema(), nl=False)

"""`nodetune profile`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nodetune import expect, paths, profile, show
from nodetune.commands import _complete


@click.group("profile")
def command() -> None:
    """Profiles: what is wanted on which kind of host."""


@command.command("show")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.profiles)
@click.option("--site", type=click.Path(path_type=Path), metavar="FILE", help="With your site's file on top.")
def show_profile(names: tuple[str, ...], site: Path | None) -> None:
    """List the profiles, or show what those named change."""
    overlays = [profile.shipped()[name] for name in profile.named(names) if names] or list(profile.shipped().values())
    for overlay in [*overlays, *([profile.read(site)] if site else [])]:
        click.echo(f"{overlay.name}: {overlay.about}".rstrip(": "))
        for when in overlay.when:
            click.echo(f"  chosen when {when.fact} is {expect.as_predicate(when.accept).describe(show.value)}")
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
    return json.dumps({key: expect.to_data(each) for key, each in change.items()})  # type: ignore[attr-defined]


@command.command("validate")
@click.argument("file", type=click.Path(path_type=Path))
def validate(file: Path) -> None:
    """Check a site file; an error names its line."""
    found = profile.read(file)
    profile.resolve(profile.named(found.profile), found)
    click.echo(
        f"{file}: {len(found.checks)} overrides, {len(found.add)} site checks, {len(found.waivers)} waivers: valid"
    )


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of profile and site files (for editors)."""
    click.echo(paths.bundled("schemas").joinpath("site.json").read_text("utf-8"), nl=False)

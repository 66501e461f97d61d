"""`nodetune profile`."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodetune.api import predicates
from nodetune.cli import Group, completion
from nodetune.config import profile
from nodetune.config import site as site_files
from nodetune.foundation import schemas, text
from nodetune.foundation.exit_codes import OK, USAGE
from nodetune.foundation.yaml_lines import FileError

if TYPE_CHECKING:
    from nodetune.config import site_lint


@click.group("profile", cls=Group)
def command() -> None:
    """Show and validate profiles."""


@command.command("show")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.profiles)
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Include this site file. May be repeated.",
)
def show_profile(names: tuple[str, ...], site: tuple[Path, ...]) -> None:
    """List profiles, or show what some change, and where."""
    overlays = [profile.shipped()[name] for name in profile.named(names) if names] or list(profile.shipped().values())
    files = site_files.read(site)
    for overlay in [*overlays, *(files.layers() if files else ()), *(files.sections if files else ())]:
        click.echo(f"{overlay.scope or overlay.name}: {overlay.about}".rstrip(": "))
        for when in overlay.when:
            click.echo(f"  selected if {when.fact} is {predicates.as_predicate(when.accept).describe(text.value)}")
        if names or site:
            for check_id, change in overlay.checks.items():
                click.echo(f"  {check_id}: {_change(change)}{_place(overlay, check_id)}")
    for waiver in files.waivers if files else ():
        who = waiver.hosts or f"group {', '.join(waiver.groups)}"
        click.echo(f"waived until {waiver.until}: {waiver.id} on {who} ({waiver.owner}: {waiver.reason})")


def _place(overlay: profile.Overlay, check_id: str) -> str:
    """Return the file and line of an override; empty for those that come with nodetune."""
    own = overlay.name in profile.shipped() and overlay is profile.shipped()[overlay.name]
    return "" if own else f"   ({overlay.file} line {overlay.lines[check_id]})"


def _change(change: object) -> str:
    if change is None:
        return "left untouched"
    if isinstance(change, bool):
        return "on" if change else "off"
    return json.dumps({key: predicates.to_data(each) for key, each in change.items()})  # type: ignore[attr-defined]


@command.command("validate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "-i",
    "--inventory",
    metavar="INV",
    shell_complete=completion.inventory,
    help="Also check that this inventory has the hosts and groups in the files.",
)
def validate(files: tuple[Path, ...], inventory: str | None) -> int:
    """Validate site files: every error, with its line.

    \b
    nodetune profile validate site.yml
    nodetune profile validate company.yml site.yml -i prod   together, with the hosts of an inventory

    Exit code: 0 valid, perhaps with warnings, 2 errors.
    """
    from nodetune.config import site_lint
    from nodetune.guard.deploy import policy

    for path in files:
        if not path.is_file():
            raise FileError(f"{path}: no such file")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    found, whole = site_lint.problems(files, today, _ranks(inventory))
    if whole and not any(each.is_error for each in found):
        for section in (whole, *whole.sections):
            resolved = profile.resolve(profile.named(whole.profile), site_files.for_section(whole, section))
            policy.require_gateable(resolved, section)
    for each in found:
        click.echo(f"{'error' if each.is_error else 'warning'}: {text.plain(each.text, 1000)}")
    errors = sum(each.is_error for each in found)
    told = [text.count(errors, "error")] if errors else ["valid"]
    told += [text.count(len(found) - errors, "warning")] if len(found) > errors else []
    click.echo(f"{' '.join(map(str, files))}: {'' if errors else _contents(whole)}{', '.join(told)}")
    return USAGE if errors else OK


def _ranks(inventory: str | None) -> site_lint.Ranks | None:
    if inventory is None:
        return None
    from nodetune.hosts.inventory import selection

    return {target.name: target.ranks for target in selection.targets(inventory)}


def _contents(whole: profile.Overlay | None) -> str:
    if whole is None:
        return ""
    own = {each.id for each in whole.add}
    overrides = len({layer.place(check_id) for layer, check_id, _ in whole.changes() if check_id not in own})
    counted = (overrides, "override"), (len(whole.add), "site check"), (len(whole.waivers), "waiver")
    return ", ".join(text.count(number, name) for number, name in counted) + ": "


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of profiles and site files."""
    click.echo(schemas.text("site"), nl=False)

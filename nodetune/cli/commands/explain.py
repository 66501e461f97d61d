"""`nodetune explain`."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import click

from nodetune import checks
from nodetune.api.model import Check
from nodetune.audit import explain
from nodetune.audit.request import AuditRequest
from nodetune.audit.selection import Selection
from nodetune.cli import completion, requests, verbosity
from nodetune.cli import options as cli_options
from nodetune.cli.host_options import comparing
from nodetune.config import profile
from nodetune.config import site as site_files
from nodetune.foundation import text
from nodetune.foundation.exit_codes import OK
from nodetune.report import sections


@requests.command("explain", AuditRequest)
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion.check_id)
@click.option(
    "--section",
    type=click.Choice(sections.NAMES),
    help="Explain what the audit of the hosts lists in this section, with each host's own devices in the commands.",
)
@cli_options.hosts_or_pods
@cli_options.saved_facts
@cli_options.selection
@comparing
@verbosity.progress_option
def command(request: AuditRequest, ids: tuple[str, ...], section: str | None) -> int:
    """Explain checks, how to confirm them manually, and their fix.

    ID is the id of a check, an area, or a shell pattern of ids. With --site, also checks of your own, and which line of
    which file sets a value. Shows the figure that moves with the setting, and the values
    of this host, or of the hosts that you name (-i, --facts).

    \b
    nodetune explain swap-large numa-balancing-on
    nodetune explain 'gpu-clock*'
    nodetune explain dirty-limit-high --facts h100-x2
    nodetune explain -i prod --section broken
    """
    if not ids and section is None:
        raise click.UsageError("give the ID of a check, or --section")
    choice = request.selection
    resolved = profile.resolve(profile.named(choice.profiles), site_files.for_all(choice.site))
    compared = explain.comparisons()
    known = {check.id: check for check in (*checks.load_all(), *compared, *resolved.checks)}
    meant = _meant(ids, known, choice.site is not None)
    from nodetune.cli.commands import _explain

    if section:
        return _explain.section(request, section, meant, known)
    from nodetune.report.text import catalogue
    from nodetune.verify import shown_by

    of_hosts = [check for check in meant if check not in compared]
    found, saved = _explain.observed(of_hosts, request)
    for number, check in enumerate(meant):
        if number:
            click.echo()
        seen = _explain.rows(found.get(check.id, []), saved=saved)
        catalogue.print_check(
            check, check.id in resolved.gates, [*shown_by.told(check), *_said(check.id, choice), *seen]
        )
    return OK


def _said(check_id: str, selection: Selection) -> list[tuple[str, str]]:
    """Return where site files set something of a check, and what is wanted of the hosts that they treat differently."""
    if selection.site is None:
        return []
    places = [layer.place(check_id) for layer in selection.site.layers() if check_id in layer.lines]
    rows = [("Set in", ", then ".join(places))] if places else []
    whole = profile.resolve(profile.named(selection.profiles), site_files.for_all(selection.site))
    if places and check_id not in {each.id for each in whole.checks}:
        rows = [("Disabled in", places[-1])]
    for section in (each for each in selection.site.sections if check_id in each.checks):
        resolved = profile.resolve(profile.named(selection.profiles), site_files.for_section(selection.site, section))
        check = next((each for each in resolved.checks if each.id == check_id), None)
        wanted = explain.wanted(check) if check else "off"
        rows.append((f"Wanted for {section.scope}", f"{wanted} ({section.file} line {section.lines[check_id]})"))
    return rows


def _meant(ids: Sequence[str], known: Mapping[str, Check], has_site: bool) -> list[Check]:
    """Return the checks that ids, areas and patterns mean, each once. Raise click.UsageError for one that means none."""
    found: dict[str, Check] = {}
    for given in ids:
        matching = {check.id: check for check in known.values() if given == check.area or fnmatchcase(check.id, given)}
        if not matching:
            near = text.near(given, known)
            hint = f"did you mean {' or '.join(near)}?" if near else "search them with: nodetune checks WORD"
            own = "" if has_site else " (a check of your own needs --site FILE)"
            raise click.UsageError(f"unknown check {given!r}: {hint}{own}")
        found |= matching
    return list(found.values())

"""Options that several commands share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from nodetune.audit.request import AuditRequest
from nodetune.audit.selection import Selection
from nodetune.cli import requests, settings, verbosity
from nodetune.cli.host_options import HostOptions, changed_hosts, changed_nodes, hosts, hosts_or_nodes, hosts_or_pods
from nodetune.cli.requests import FILE, FOLDER, complete, of, span, stack
from nodetune.config import profile
from nodetune.foundation import file_io, paths, text
from nodetune.report import FORMATS

__all__ = [
    "FILE",
    "FOLDER",
    "changed_hosts",
    "changed_nodes",
    "hosts",
    "hosts_or_nodes",
    "hosts_or_pods",
    "span",
    "stack",
]
"""From host_options and requests, for the commands."""

ENDINGS = {
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".xml": "junit",
    ".prom": "prometheus",
    ".txt": "text",
    ".csv": "csv",
}
"""The format that a file's name asks for, where --format does not say another."""

SQLITE_FILES = ("", "-wal", "-shm", "-journal")
"""The endings of a database's name that SQLite writes to."""

PLAIN = (".log", ".out")
"""Endings that ask for no format."""


class _Place(settings.Setting):
    def locate(self, folder: Path, value: str) -> str:
        """Return a URL as it is, and a path of a file in this folder."""
        from nodetune.history import postgres

        return value if postgres.is_url(value) else str(folder / value)

    def shown(self, value: Any) -> str:
        """Return the place: of a URL, host and database."""
        return shown_place(value) if value else super().shown(value)


def shown_place(place: str) -> str:
    """Return the place of a history for people: of a URL, host and database. … replaces a user."""
    from nodetune.history import postgres  # most runs have none

    if not postgres.is_url(place):
        return text.plain(place)
    return postgres.shown(place).replace("://", "://…@" if "@" in place else "://", 1)


def _remembered(_context: click.Context, _parameter: click.Parameter, place: str) -> str:
    """Return the history. Raise SettingsError where a folder names a database, or a file outside it."""
    if place:
        from nodetune.history import postgres  # most runs have none

        if postgres.is_url(place):
            settings.refuse_folder("history", "where facts go")
        else:
            settings.keep_inside("history", place, SQLITE_FILES)
    return place


history = click.option(
    "--history",
    cls=_Place,
    default="",
    callback=_remembered,
    metavar="FILE|URL",
    help="Remember facts, findings and figures in this file, or in PostgreSQL (postgresql://…). Default: nowhere.",
)

site = click.option(
    "--site",
    cls=settings.Setting,
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Site file with overrides, checks and waivers. May be repeated: later files win. none: no site file.",
)


class _Receiver(settings.Setting):
    def shown(self, value: Any) -> str:
        """Return where notices go, without a secret."""
        if not value:
            return super().shown(value)
        from nodetune.cli import receivers  # most runs notify nobody

        return receivers.shown(value)


def _notified(context: click.Context, parameter: settings.Setting, url: str) -> str:
    if not url:
        return url
    from nodetune.cli import receivers

    return receivers.checked(context, parameter, url)


notify = click.option(
    "--notify",
    cls=_Receiver,
    **of(AuditRequest, "notify"),
    metavar="URL",
    callback=_notified,
    help="Send changed verdicts to this URL: http(s)://… as JSON, slack+https://…, alertmanager+http://…, otlp+http://…. Changes no exit code. The process list shows it: a URL with a secret belongs in NODETUNE_NOTIFY or your settings file.",
)

judging = stack(
    click.option(
        "-p",
        "--profile",
        "profiles",
        cls=settings.Setting,
        multiple=True,
        metavar="NAME",
        shell_complete=complete("profiles"),
        help="Profile instead of training. May be repeated. Matching profiles (vm, grace …) are added.",
    ),
    site,
)

selection = stack(
    judging,
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="ID",
        shell_complete=complete("selected"),
        help="Run only these checks or areas (shell patterns).",
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="ID",
        shell_complete=complete("selected"),
        help="Skip these checks or areas.",
    ),
)


@dataclass(frozen=True)
class SelectionOptions:
    """The options as typed."""

    profiles: tuple[str, ...] = ()
    site: tuple[Path, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def built(self) -> Selection:
        """Return what they say. Raise yaml_lines.FileError."""
        profile.named(self.profiles)
        if self.select or self.ignore:
            from nodetune.cli import hints  # most runs select no checks

            hints.expect_patterns("-s", self.select)
            hints.expect_patterns("--ignore", self.ignore)
        return Selection(self.profiles, site_file(self.site), self.select, self.ignore, files=self.site)


def site_file(paths: tuple[Path, ...]) -> profile.Overlay | None:
    """Return what --site names as one site file. Raise yaml_lines.FileError."""
    if not paths or paths == (Path("none"),):
        return None
    from nodetune.cli import site_files  # most runs have none

    return site_files.read(paths)


# site files are read before a password is asked
requests.BUILT |= {"selection": SelectionOptions, "connection": HostOptions}


def _saved(_context: click.Context, _parameter: click.Parameter, typed: Path | None) -> Path | None:
    """Return an existing path, also for the name of a bundled machine."""
    if typed is None or typed.exists():
        return typed
    bundled = {each.stem: each for each in sorted(paths.bundled("facts/recorded").glob("*.json"))}
    if str(typed) in bundled:
        return bundled[str(typed)]
    raise click.BadParameter(f"no such file or folder: {typed} (bundled machines: {', '.join(bundled)})")


SAVED: dict[str, Any] = {
    "type": click.Path(path_type=Path),
    "callback": _saved,
    "shell_complete": complete("saved_facts"),
}
"""Settings of a parameter for a saved file or folder, or the name of a bundled machine."""

saved_facts = click.option(
    "--facts", "facts_path", **SAVED, metavar="FILE|DIR", help="Use saved facts; connect to no host."
)
fail_on = click.option(
    "--fail-on", **of(AuditRequest, "fail_on"), help="Exit with 1 on findings of this severity or higher."
)


def _writable(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Check that the file can be written before any host is contacted. Raise OSError. A dash is standard output."""
    if path == Path("-"):
        return None
    if path:
        file_io.check(path)
    return path


def _by_ending(context: click.Context, parameter: click.Parameter, typed: str) -> str:
    """Return the format: the given one, else that of the file's ending. Raise click.BadParameter."""
    path, source = context.params.get("output"), context.get_parameter_source(str(parameter.name))
    if not isinstance(path, Path) or not (ending := path.suffix.lower()):
        return typed
    formats: Sequence[str] = getattr(parameter.type, "choices", ())
    asked = ENDINGS.get(ending, "")
    if source is ParameterSource.COMMANDLINE and asked not in ("", "text", typed):
        raise click.BadParameter(f"{path} implies {asked}, and --format is {typed}: change one of them")
    if source is not ParameterSource.DEFAULT or ending in PLAIN:
        return typed
    if asked in formats:
        return str(asked)
    if asked:
        raise click.BadParameter(f"{path} implies {asked}, but this command writes {' or '.join(formats)}")
    endings = ", ".join(each for each, name in ENDINGS.items() if name in formats)
    unknown = f"{path} has an unknown extension ({text.plain(ending, 20)})"
    raise click.BadParameter(f"{unknown}: use one of {endings}, or say what to write with --format")


def format_option(formats: Sequence[str], *, file: bool = True) -> Callable[[Any], Any]:
    """Return --format with these formats; the first is the default. `file`: the command has -o too."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        callback=_by_ending,
        help="Output format." + " With -o, its extension decides." * file,
    )


output = click.option(
    "-o",
    "--output",
    **FILE,
    callback=_writable,
    is_eager=True,
    help="Write to this file instead of standard output.",
)
output_format = format_option(["text", "json"])
printed_format = format_option(["text", "json"], file=False)
rows_format = format_option(["text", "json", "lines", "csv"])
audit_format = format_option(list(FORMATS))
previous = click.option(
    "--previous",
    **FILE,
    help="Mark new and fixed findings since an earlier audit, saved as HTML or JSON (--format html).",
)
measurements = click.option(
    "--measurements",
    **FILE,
    multiple=True,
    help="Add results of nodetune verify --format json to the page (--format html). May be repeated.",
)


@contextmanager
def writing(path: Path | None) -> Iterator[TextIO]:
    """Open the file of -o, or standard output. Say on stderr where the file is; raise OSError about it."""
    with file_io.output(path) as stream:
        yield stream
    if path and path.is_file():
        verbosity.note(f"written to {path}")

"""Settings: what a file or a NODETUNE_ variable says for all commands, where the command line says nothing."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from nodetune.cli import in_words, verbosity
from nodetune.foundation import UserError, file_io, text

FILE, PROJECT_FILE = "nodetune.toml", "pyproject.toml"
VARIABLE = "NODETUNE_CONFIG"
"""Names a file to read instead of those; empty: none."""

LARGEST = 1 << 20
MAX_BITS = 64
"""Of a number: Python does not even print one of thousands of digits, which TOML can have in hexadecimal."""

NEAR = 0.8
_STORED = "nodetune.settings"


class SettingsError(UserError):
    """A setting is wrong; the text is one line: where, what, and what to do."""


class Given(NamedTuple):
    """A value of a file, where it is (nodetune.toml:3), and whether the file is the folder's, not the user's own."""

    value: Any
    where: str
    of_project: bool


class Setting(click.Option):
    """An option that a file or a variable also sets. see known_settings.py."""

    @property
    def key(self) -> str:
        return max(self.opts, key=len).lstrip("-")

    @property
    def envvar(self) -> str:  # an attribute of click
        return "NODETUNE_" + self.key.replace("-", "_").upper()

    @envvar.setter
    def envvar(self, _: object) -> None:
        """Take no other name."""

    def locate(self, folder: Path, value: str) -> str:
        """Return a value of a file in this folder, where a relative path starts at the folder."""
        return str(folder / value) if isinstance(self.type, click.Path) else value

    def shown(self, value: Any) -> str:
        """Return a value as a file has it, without what nobody else may read."""
        return shown_value(value)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source: command line, variable, file, default."""
        value, source = super().consume_value(ctx, opts)
        given = of_files(ctx).get(self.key) if source is ParameterSource.DEFAULT else None
        return (given.value, ParameterSource.DEFAULT_MAP) if given else (value, source)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Process the value. Raise SettingsError where the command line does not hold it."""
        try:
            return super().handle_parse_result(ctx, opts, args)
        except click.BadParameter as problem:
            if not is_implicit(ctx, str(self.name)):
                raise
            hint = f"give --{self.key} for this command, or change it"
            raise SettingsError(f"{origin(ctx, self)}: {self.key}: {in_words(problem.message)}: {hint}") from None


def _known(ctx: click.Context) -> Mapping[str, Setting]:
    """Return the options that a file may set, by key. The program registers what returns them, as `obj` of its context."""
    known: Callable[[], Mapping[str, Setting]] = ctx.find_root().obj
    return known()


def is_implicit(ctx: click.Context, name: str) -> bool:
    """Tell whether the value of a parameter comes from a file or a variable."""
    return ctx.get_parameter_source(name) in (ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)


def origin(ctx: click.Context, setting: Setting) -> str:
    """Return where a value comes from: a file with its line, a variable, the command line or default."""
    source = ctx.get_parameter_source(str(setting.name))
    if source is ParameterSource.DEFAULT_MAP:
        return of_files(ctx)[setting.key].where
    if source is ParameterSource.ENVIRONMENT:
        return setting.envvar
    return "command line" if source is ParameterSource.COMMANDLINE else "default"


def named_by_project(name: str) -> str:
    """Return where the current folder's file, perhaps of another author, sets an option; empty if it does not."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or ctx.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        return ""
    given = next(
        of_files(ctx)[param.key] for param in ctx.command.params if isinstance(param, Setting) and param.name == name
    )
    return given.where if given.of_project else ""


def refuse_folder(name: str, what: str) -> None:
    """Raise SettingsError where the current folder's file, perhaps of another author, decides this."""
    if where := named_by_project(name):
        key = name.removesuffix("_folder")  # of --runs
        own = f"~/.config/nodetune/nodetune.toml or NODETUNE_{key.upper()}"
        raise SettingsError(f"{where}: {key}: a folder does not decide {what}: move it to {own}")


def keep_inside(name: str, place: str, endings: Sequence[str] = ("",)) -> None:
    """Raise SettingsError where that file names a place to write to that is not below its folder. A link counts as its target.

    `endings` are those of the names of files that are written with it.
    """
    here, there = os.path.realpath(os.curdir), os.path.expanduser(place)  # noqa: PTH111  (Path.expanduser raises)
    if any(os.path.commonpath((here, os.path.realpath(there + ending))) != here for ending in endings):
        refuse_folder(name, "what is written outside it")


def announce() -> None:
    """Print the inventory and site file that a command that changes hosts takes from settings."""
    ctx = click.get_current_context()
    for param in ctx.command.params:
        if isinstance(param, Setting) and param.key in ("inventory", "site") and is_implicit(ctx, str(param.name)):
            click.echo(f"{param.key}: {shown_value(ctx.params[str(param.name)])} ({origin(ctx, param)})", err=True)


def explain(used: Mapping[str, Any]) -> None:
    """With -v, say which settings hold that the command line does not name. `used` are the options that the command uses."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or not verbosity.is_verbose():
        return
    for param in ctx.command.params:
        name = str(param.name)
        value = ctx.params.get(name)
        if isinstance(param, Setting) and is_implicit(ctx, name) and used.get(name, value) == value:
            verbosity.detail(f"{param.key}: {param.shown(value)} ({origin(ctx, param)})")


def shown_value(value: Any) -> str:
    """Return a value as a file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ("", ()):
        return "-"
    return ", ".join(map(text.plain, value)) if isinstance(value, tuple) else text.plain(value)


def of_files(ctx: click.Context) -> Mapping[str, Given]:
    """Return what the files set, read once a command. Raise SettingsError; nothing while a shell completes a line."""
    found: Mapping[str, Given] | None = ctx.meta.get(_STORED)
    if found is None:
        found = {}
        try:
            if others := [name for name in os.environ if name.startswith("NODETUNE_") and name != VARIABLE]:
                _name_near(others, _known(ctx))
            found = {key: given for path in reversed(files()) for key, given in _read(path, ctx).items()}
        except SettingsError:
            if not ctx.resilient_parsing:
                raise
        ctx.meta[_STORED] = found
    return found


def _name_near(others: Sequence[str], known: Mapping[str, Setting]) -> None:
    """Name those of these variables of the environment that nearly are the variable of a setting."""
    variables = {each.envvar for each in known.values()} | {VARIABLE}
    names = {name.removeprefix("NODETUNE_"): name for name in variables}
    for other in sorted(name for name in others if name not in variables):
        near = get_close_matches(other.removeprefix("NODETUNE_"), names, 1, NEAR)
        if near:
            click.echo(f"nodetune: {text.plain(other, 60)} is not a setting: did you mean {names[near[0]]}?", err=True)


def files() -> list[Path]:
    """Return the files that count, the first one first. Raise SettingsError."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return [Path(named)] if named else []
    here = [path for path in (Path(FILE), Path(PROJECT_FILE)) if os.path.lexists(path)]
    return [*[each for each in here if each.name == FILE or _section(each)][:1], *filter(os.path.lexists, user_file())]


def user_file() -> list[Path]:
    """Return the path of the user's own file; None without a home directory."""
    above = os.environ.get("XDG_CONFIG_HOME") or ""
    with suppress(RuntimeError):
        return [(Path(above) if above.startswith("/") else Path.home() / ".config") / "nodetune" / FILE]
    return []


def shown(path: Path) -> str:
    """Return a path as people write it."""
    with suppress(RuntimeError, ValueError):
        return text.plain(f"~/{path.relative_to(Path.home())}")
    return text.plain(path)


def _read(path: Path, ctx: click.Context) -> dict[str, Given]:
    """Return what one file sets. Raise SettingsError, also for a file that another user may write to."""
    from nodetune.foundation import ownership

    why = ownership.writable_by_others(path)
    if why:
        raise SettingsError(f"{shown(path)} is not read: {text.plain(why)}: fix this, or set {VARIABLE}= to disable it")
    content = _content(path)
    data = _table(path, content)
    head = "[tool.nodetune]" if path.name == PROJECT_FILE else ""
    known = _known(ctx) if data else {}
    return {key: _checked(path, key, value, known, _line_of(key, content, head)) for key, value in data.items()}


def _content(path: Path) -> str:
    """Read a file. Raise SettingsError."""
    try:
        return file_io.read(path.resolve(), LARGEST, regular=True).decode()
    except UnicodeDecodeError:
        raise SettingsError(f"{shown(path)}: not UTF-8 text") from None
    except (OSError, RuntimeError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise SettingsError(f"{shown(path)}: {why.lower()}") from None


def _section(path: Path) -> bool:
    """Tell whether a project's file is about nodetune; one that cannot be read is not."""
    with suppress(SettingsError):
        return "tool.nodetune" in (content := _content(path)) or ("[tool]" in content and "nodetune" in content)
    return False


def _table(path: Path, content: str) -> dict[str, Any]:
    """Parse a file. Raise SettingsError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data = tomllib.loads(content)
    except RecursionError as problem:
        raise SettingsError(f"{shown(path)}: not TOML: {text.plain(problem)}") from None
    except ValueError as problem:
        raise SettingsError(f"{shown(path)}: not TOML: {text.unread(problem)}") from None
    if path.name != PROJECT_FILE:
        return data
    found = data.get("tool", {}).get("nodetune", {}) if isinstance(data.get("tool"), dict) else {}
    if not isinstance(found, dict):
        raise SettingsError(f"{shown(path)}: tool.nodetune is not a table: write [tool.nodetune]")
    return found


def _line_of(key: str, content: str, head: str) -> str:
    """Return `:LINE` of a key below a table's head: tomllib does not report it. Nothing for one written in another way."""
    name, lines = re.escape(key), content.splitlines()
    begins = re.compile(rf"""\s*(?:\[?\s*)(?:{name}|"{name}"|'{name}')\s*[=.\]]""")
    first = next((number for number, line in enumerate(lines) if line.strip().startswith(head)), 0)
    return next((f":{number}" for number, line in enumerate(lines[first:], first + 1) if begins.match(line)), "")


def _checked(path: Path, key: str, value: Any, known: Mapping[str, Setting], line: str) -> Given:
    """Return one value of a file. Raise SettingsError."""
    where = f"{shown(path)}{line}"
    of_project = VARIABLE not in os.environ and path.parent == Path()
    option = known.get(key)
    if option is None:
        near = text.near(key.replace("_", "-"), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "nodetune config lists them"
        raise SettingsError(f"{where}: unknown setting {text.plain(key, 60)!r}: {hint}")
    if option.multiple:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(each, str) and "\0" not in each for each in texts):
            raise SettingsError(f"{where}: {key}: write a text or a list of texts")
        return Given([_located(option, path, each) for each in texts], where, of_project)
    return Given(_single(option, path, value, where), where, of_project)


def _single(known: Setting, path: Path, value: Any, where: str) -> Any:
    """Return a value of the type that an option takes. Raise SettingsError."""
    wanted, like = _type(known)
    if (
        not isinstance(value, wanted)
        or (isinstance(value, bool) and wanted is not bool)
        or (isinstance(value, int) and value.bit_length() > MAX_BITS)
        or (isinstance(value, str) and (not value or "\0" in value))
    ):
        raise SettingsError(f"{where}: {known.key}: write {like}")
    return _located(known, path, value) if isinstance(value, str) else value


def _type(known: Setting) -> tuple[Any, str]:
    """Return the type that a file must have, and its description."""
    if known.is_flag:
        return bool, "true or false"
    if isinstance(known.type, click.types.IntRange):
        return int, "a whole number"
    if isinstance(known.type, click.types.FloatRange):
        return (int, float), "a number"
    return str, 'a text in quotes: "…"'


def _located(known: Setting, path: Path, value: str) -> str:
    """Return a value of a file; a relative path in it starts at the folder of the file."""
    if value.startswith("~") and known.locate(Path("/"), "~") != "~":
        with suppress(RuntimeError):
            return str(Path(value).expanduser())
    return value if path.parent == Path() else known.locate(path.parent.absolute(), value)

"""The command line: groups, whose commands are files that are imported when used; options under headings; errors."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import click

DESCRIPTION = re.compile(r'^def command\((?s:.*?)\) -> .*\n    """(.*?)(?:"""|$)', re.MULTILINE)
"""The first line of the docstring of the command in a file."""

COMMON = "Options"
HEADINGS = {
    "Connection": (
        "failed_of forks timeout user ask_become_pass private_key port transport accept_new_host_keys"
        " vault_id vault_password_file ask_vault_pass context namespace image"
    ),
    "Saved facts": "cache max_age",
    "Comparison": "cohort reference no_compare baseline save_baseline compare",
    "NCCL": "multi_node nccl nccl_tests env",
    "Report": "against group_by fail_on previous measurements notify files export scheduler_diff",
    "Nodes and batches": "drain reboot_wait drain_wait assume_drained batch canary max_failures",
    "Messages and records": "verbose quiet progress runs_folder history",
}
"""Headings of the help, and the options below each. All others are common."""

NEAR = 0.7
"""How alike a mistyped command and a proposed one are: more than `aduit` and `readmit`."""

NUMBERS = {"integer": "a whole number", "float": "a number"}

_HEADING = {name: heading for heading, names in HEADINGS.items() for name in names.split()}


class Group(click.Group):
    """A group that proposes commands for a name that it does not have, and that is its help where none is given."""

    meant: ClassVar[Mapping[str, str]] = {}
    """Words that a user may type → the commands that do it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `help COMMAND` for `COMMAND --help`. Without arguments, the help is the result: stdout, and 0."""
        if not ctx.resilient_parsing and (args[:1] == ["help"] or (not args and self.no_args_is_help)):
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raise click.UsageError with similar names."""
        word = args[0]
        if not word.startswith("-") and word not in self.list_commands(ctx):
            known = [self.meant[word]] if word in self.meant else []
            close = known or get_close_matches(word, self.list_commands(ctx), 2, NEAR) or self._below(ctx, word)
            hint = f"did you mean {' or '.join(close)}?" if close else f"list them with: {ctx.command_path} --help"
            of = f" of {ctx.command_path}" if ctx.parent else ""
            raise click.UsageError(f"unknown command {word!r}{of}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def _below(self, ctx: click.Context, word: str) -> list[str]:  # noqa: ARG002
        """Return the commands of that name which belong to a command of this group."""
        return []


class Folder(Group):
    """A group whose commands are the files of a package below this one: it imports one when it is used."""

    package: ClassVar[str]
    headings: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Headings of the help, and the commands below each. Others come last, under `Commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(self._files())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by the first lines of their docstrings: to import them all takes a quarter of a second."""
        lines = ((name, DESCRIPTION.search(path.read_text("utf-8"))) for name, path in sorted(self._files().items()))
        listed = {name: line[1] for name, line in lines if line}
        width = max(map(len, listed), default=0)
        others = [name for name in listed if not any(name in names for names in self.headings.values())]
        for heading, names in {**self.headings, "Other commands" if self.headings else "Commands": others}.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), listed[name]) for name in names])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"{self.package}.{cmd_name}").command
        return command

    def _files(self) -> dict[str, Path]:
        return {
            path.stem: path for path in (Path(__file__).parents[2] / self.package.replace(".", "/")).glob("[a-z]*.py")
        }

    def _below(self, ctx: click.Context, word: str) -> list[str]:
        """Return the commands of groups here that have this name; import only the groups that may have one."""
        sources = {name: path.read_text("utf-8") for name, path in self._files().items()}
        likely = (
            self.get_command(ctx, name)
            for name, text in sources.items()
            if "@click.group(" in text and (f'.command("{word}"' in text or "import folder" in text)
        )
        groups = (each for each in likely if isinstance(each, click.Group) and word in each.list_commands(ctx))
        return sorted(f"{each.name} {word}" for each in groups)


def folder(package: str) -> type[Folder]:
    """Return the class of a group with the commands of this package."""
    return type("Folder", (Folder,), {"package": package})


class Command(click.Command):
    """A command of nodetune."""

    allow_extra_args = True  # parse_args refuses them, and says what was meant

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raise click.UsageError for words that are no options, with the option that takes them."""
        words = super().parse_args(ctx, args)
        if words and not ctx.resilient_parsing:
            raise click.UsageError(_unexpected(ctx, words), ctx)
        return words

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {COMMON: [], **{heading: [] for heading in HEADINGS}}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record:
                sections[_HEADING.get(str(param.name), COMMON)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=26)


def _unexpected(ctx: click.Context, words: Sequence[str]) -> str:
    """Return what is wrong with words that a command does not take: hosts and files have options."""
    from shlex import quote  # here: only mistakes want it

    options = {str(param.name): param.opts[0] for param in ctx.command.params}
    hosts = "limit" if ctx.params.get("inventory") else "inventory"
    name = "facts_path" if words[0].endswith(".json") else hosts
    hint = f": did you mean {options[name]} {quote(','.join(words))}?" if name in options else ""
    return f"unexpected argument {words[0]!r}{hint}"


def told(problem: click.ClickException) -> str:
    """Return an error of click in the style of all others: what is wrong, and what to do."""
    text = in_words(problem.format_message())
    ctx = getattr(problem, "ctx", None)
    see = f": see {ctx.command_path} --help" if ctx else ""
    if isinstance(problem, click.NoSuchOption):
        from nodetune.cli import hints  # here: only mistakes want them

        hint = hints.option(problem)
        return f"no such option {problem.option_name}" + (f": {hint}" if hint else "")
    return text[:1].lower() + text[1:] + see * isinstance(problem, click.MissingParameter)


def in_words(message: str) -> str:
    """Return a message of click without its names of Python types, and without a full stop."""
    said = re.compile(r"is not a valid (integer|float)(?: range)?\b")
    return said.sub(lambda kind: f"is not {NUMBERS[kind[1]]}", message).rstrip(".")

"""The option or value that a user meant who typed another: words of other tools, lists, values of other options."""

import re
from collections.abc import Iterable
from shlex import quote

import click

from nodetune.foundation import UserError

HOSTS = ("--host", "--hosts", "--node", "--nodes")


class SelectError(UserError):
    """Values of -s or --ignore that name no checks."""


def option(problem: click.NoSuchOption) -> str:
    """Return what to type instead of an option that a command does not have."""
    command = problem.ctx.command if problem.ctx else None
    has = {name for param in command.params for name in param.opts} if command else set()
    if problem.option_name == "--facts" and command and command.name == "apply":
        return "apply changes hosts and takes no saved facts: nodetune plan --facts shows what it would change"
    if problem.option_name == "--facts":
        return "audit, plan and explain take saved facts"
    if problem.option_name in HOSTS and "--limit" in has:
        return "did you mean -l (some hosts of the inventory) or -i (an inventory, or hosts by name)?"
    near = [name for name in problem.possibilities or () if name.startswith("--")][:2]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"see {problem.ctx.command_path} --help" if problem.ctx else ""


def expect_patterns(option: str, values: Iterable[str]) -> None:
    """Raise SelectError for lists, severities and sections, which are no ids, areas or patterns of checks."""
    for value in values:
        words = [word for word in re.split(r"[,\s]+", value) if word]
        if told := _meant(option, words):
            raise SelectError(f"{option} {quote(value)}: {told}")


def _meant(option: str, words: list[str]) -> str:
    from nodetune.api.model import SEVERITIES  # here: most values are patterns
    from nodetune.report.sections import NAMES

    if words and all(word in SEVERITIES for word in words):
        least = min(words, key=SEVERITIES.index)
        return f"checks have ids and areas; --fail-on {least} is about severities, and the report orders by them"
    if words and all(word in NAMES for word in words):
        return f"checks have ids and areas; nodetune explain --section {words[0]} is about a section"
    if len(words) > 1:
        return f"one value each: {' '.join(f'{option} {quote(word)}' for word in words)}"
    return ""

"""The command line: a group whose commands are the files in nodetune/cli/commands, imported when used, and what ends it."""

import errno
import gc
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import click

from nodetune import __version__
from nodetune.cli import Folder, told
from nodetune.foundation import UserError, paths
from nodetune.foundation.exit_codes import FINDINGS, INTERRUPTED, OK, READER_GONE, USAGE

COLLECTED = 50_000, 20, 100
"""Thresholds of the garbage collector. Facts are trees without cycles, hundreds for each of thousands of hosts."""


class Commands(Folder):
    """The commands of nodetune."""

    package = "nodetune.cli.commands"
    headings: ClassVar[Mapping[str, Sequence[str]]] = {
        "Look: change nothing": (
            "audit",
            "status",
            "explain",
            "plan",
            "verify",
            "watch",
            "slow",
            "diff",
            "facts",
            "report",
            "checks",
        ),
        "Change: can be rolled back": ("apply", "rollback", "runs", "tune", "provision", "lock"),
        "Keep: watch what holds": ("guard", "readmit", "pull"),
    }
    meant: ClassVar[Mapping[str, str]] = {
        "fix": "apply",
        "scan": "audit",
        "undo": "rollback",
        "measure": "verify",
        "version": "--version",
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the overview where no command is given and something is recorded; else the help."""
        if not args and not ctx.resilient_parsing:
            from nodetune.cli import overview

            if overview.print_overview(click.echo):
                ctx.exit()
        return super().parse_args(ctx, args)


def known_settings() -> Mapping[str, click.Option]:
    """Return the options that a file of settings may set, by key: the `obj` of each context of a command."""
    from nodetune.cli.known_settings import KNOWN  # most runs have no file of settings

    return KNOWN


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "obj": known_settings},
)
@click.version_option(__version__, "-V", "--version", message="nodetune %(version)s")
def group() -> None:
    """Audit, tune, verify and guard GPU servers."""


def main() -> None:
    """Run the command line. Every error that a user can cause is one line and an exit code, mostly 2."""
    gc.set_threshold(*COLLECTED)
    _prepare_output()
    try:
        code = group.main(prog_name="nodetune", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        code = _say("interrupted", INTERRUPTED)
    except click.ClickException as problem:
        code = _say(told(problem), USAGE)
    except BrokenPipeError:
        code = _reader_gone()
    except SystemExit as ended:  # click and rich end a broken pipe with 1, which would mean findings
        code = _reader_gone() if ended.code == FINDINGS else ended.code
    except ModuleNotFoundError as problem:
        library = (problem.name or paths.NAME).partition(".")[0]
        if library == paths.NAME:
            raise
        code = _say(f"{library} {paths.LACKING}: install nodetune's wheel with its dependencies", USAGE)
    except (UserError, OSError) as problem:
        code = _say(_text(problem), getattr(problem, "code", USAGE))
    sys.exit(code if isinstance(code, int) else OK)


def _reader_gone() -> int:
    """Discard further output after the reader closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return READER_GONE


def _text(problem: Exception) -> str:
    """Return the text of an error: file name and problem, without the error number."""
    if isinstance(problem, OSError) and problem.strerror:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
        where = problem.filename or ("standard output" if full else "")
        return f"{where}: {problem.strerror}" if where else problem.strerror
    return str(problem)


def _prepare_output() -> None:
    """Make sure that standard output exists and accepts every character in any locale."""
    if sys.stdout is None:  # started with it closed
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (open until the end)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _say(message: str, code: int) -> int:
    line = re.sub(r"(\S{80})\S{1000,}", r"\1…", " ".join(message.split()))
    click.echo(f"nodetune: {paths.as_typed(line)}", err=True)
    return code

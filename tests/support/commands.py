"""Runs commands in this process."""

import contextlib
import io

import click

from nodetune.cli.main import group
from nodetune.foundation import UserError


def run(*words):
    """Run a command: (code, stdout, stderr). Only a UserError, an OSError or what click raises is a line for a user."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = group.main([str(word) for word in words], prog_name="nodetune", standalone_mode=False)
        except (UserError, OSError, click.ClickException) as problem:
            code = 2
            err.write(f"{problem}\n")
    return code or 0, out.getvalue(), err.getvalue()

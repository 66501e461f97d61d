"""The program as its console script runs it, in this process: for what a command says, not for how a process starts and ends."""

import io
import subprocess
import sys

import pytest

from nodetune.cli import main


def nodetune(*words, cwd=None, stdin="", env=None):
    """What became of a command: its exit code and what it wrote. An exception that it lets through fails the test."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as here:
        for name, value in {"COLUMNS": "100", **(env or {})}.items():
            here.setenv(name, value)
        if cwd:
            here.chdir(cwd)
        here.setattr(sys, "argv", ["nodetune", *map(str, words)])
        here.setattr(sys, "stdin", io.StringIO(stdin))
        here.setattr(sys, "stdout", out)
        here.setattr(sys, "stderr", errors)
        here.setattr(main.gc, "set_threshold", lambda *_: None)
        with pytest.raises(SystemExit) as ended:
            main.main()
    return subprocess.CompletedProcess(words, ended.value.code, *(_text(each) for each in (out, errors)))


def _text(stream):
    return stream.buffer.getvalue().decode()

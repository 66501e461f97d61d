"""What every benchmark shares: its command line, what a command costs, and the words for what cannot run here."""

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.support import figures

BIN = Path(sys.executable).parent
COUNT = click.IntRange(min=1)
SKIPPED = 77
"""The exit code of a benchmark that cannot run on this machine."""


class UnavailableError(Exception):
    """Why a benchmark, or a case of one, cannot run on this machine."""


class Cost(NamedTuple):
    """CPU seconds of a command and its children, wall seconds, peak memory of the largest process in MiB."""

    cpu: float
    wall: float
    peak: float


def cost(command, environment=None, script=b"", expected=(0,)):
    """Run a command with `script` as its input. Exit if its exit code is not one of `expected`."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(script)
        given.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=output, stderr=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode not in expected:
            text = output.read().decode("utf-8", "replace")[-2000:]
            sys.exit(f"{' '.join(map(str, command))[:200]} ended with {process.returncode}:\n{text}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def times(one, other, digits=1):
    """Say how many times as much one is as the other."""
    return f"{one / other:.{digits}f} ×"  # noqa: RUF001


def benchmark(text, **smallest):
    """Make a command of a function that measures and returns its figures by row of figures.yml.

    `text` is its help. `smallest` has the arguments of a run that takes seconds.
    """

    def decorate(measure):
        @click.command(help=" ".join(text.split()))
        @click.option("--smallest", "small", is_flag=True, help="Take seconds: show that it runs, at a size of no use.")
        @click.option("--record", type=click.Path(path_type=Path), help="Also write the figures to this YAML file.")
        @functools.wraps(measure)
        def command(small, record, **arguments):
            try:
                found = measure(**{**arguments, **(smallest if small else {})})
            except UnavailableError as why:
                click.echo(f"skipped: {why}", err=True)
                sys.exit(SKIPPED)
            for row, figure in found.items():
                click.echo(f"{row}: {figure}")
            if record:
                figures.record(found, record)

        return command

    return decorate

"""Runs benchmarks. --readme runs each command of benchmarks/figures.yml that is one of a benchmark, and writes its figures there
with the date and this machine; `make write` then puts them into the README. --smallest runs each benchmark at its smallest
size, and writes nothing. NAMES limit either to some of them. What cannot run on this machine is skipped, with the reason."""

import shlex
import subprocess
import sys
from pathlib import Path

import click

from benchmarks.support import figures, measuring

HERE = Path(__file__).parent
NAMES = sorted({file.stem for file in HERE.glob("*.py")} - {"__main__", "compare"})


@click.command(help=" ".join(__doc__.split()))
@click.option("--readme", "size", flag_value="readme", help="As the README shows them: an hour.")
@click.option("--smallest", "size", flag_value="smallest", help="Seconds each.")
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(NAMES))
def main(size, names):
    if size is None:
        raise click.UsageError(f"say --readme or --smallest. Benchmarks: {', '.join(NAMES)}")
    wanted = [(name, words) for name, words in commands(size) if name in (names or NAMES)]
    if failed := [name for name, words in wanted if run(name, words) not in (0, measuring.SKIPPED)]:
        sys.exit(f"failed: {', '.join(failed)}")


def commands(size):
    """(benchmark, its words) in the order of the README."""
    if size == "smallest":
        return [(name, [f"benchmarks/{name}.py", "--smallest"]) for name in NAMES]
    words = dict.fromkeys(row["command"] for row in figures.rows().values())
    every = [shlex.split(each)[1:] for each in words if each.startswith("python benchmarks/")]
    return [(Path(each[0]).stem, [*each, "--record", str(figures.FILE)]) for each in every]


def run(name, words):
    click.echo(f"== {name}")
    return subprocess.run([sys.executable, *words], cwd=HERE.parent, check=False).returncode


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")

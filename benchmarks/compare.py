"""Compares this checkout with OTHER, a checkout with a .venv of its own (`make try` makes one): start-up, an audit of 40 and of 300 SSH
logins, a report of 10,000 saved hosts, the probe, and the guard's entry. Each runs from both checkouts in turn, after one run
that does not count and with an empty cache each time. Prints the medians and their ratio, this checkout to OTHER, of CPU time
(user and system, with children) and wall time, with the lowest and highest ratio of a round. CASEs limit it to: start-up,
logins-40, logins-300, report, probe, guard-entry."""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks import probe
from benchmarks.support import logins, synthetic_fleet
from benchmarks.support.measuring import BIN, COUNT, benchmark, cost, times
from tests.unit.guard import install

HERE = Path(__file__).resolve().parents[1]
NODE = """
import json, sys
from pathlib import Path
from tests.unit.guard import install
folder, library = map(Path, sys.argv[1:])
node = install.Node(folder / "node", install.program(folder / "program"), library)
environment = node.environment(gpus="0,1,2,3,4,5,6,7")
print(json.dumps([str(node.prolog), str(node.run_folder / "pass"), environment]))
"""


class Run(NamedTuple):
    """A command of one checkout; `forget` is a folder that is removed before."""

    command: list
    environment: dict | None = None
    script: bytes = b""
    forget: str = ""


class Checkout(NamedTuple):
    folder: Path
    bin: Path
    cache: str

    def nodetune(self, *words):
        environment = {**os.environ, "XDG_CACHE_HOME": self.cache}
        return Run([f"{self.bin}/nodetune", *words, "--fail-on", "never"], environment, forget=self.cache)


@contextlib.contextmanager
def start_up(checkouts, _size):
    yield [each.nodetune("audit", "--facts", "h200-x4") for each in checkouts]


@contextlib.contextmanager
def audit_logins(checkouts, count):
    with logins.farm(count) as served:
        hosts = logins.inventory(served, served.targets)
        yield [each.nodetune("audit", "-i", str(hosts), "--forks", "16") for each in checkouts]


@contextlib.contextmanager
def report(checkouts, count):
    with synthetic_fleet.saved(count) as facts, tempfile.TemporaryDirectory() as folder:
        output = ("--format", "html", "-o", f"{folder}/page.html")
        yield [each.nodetune("audit", "--facts", str(facts), *output) for each in checkouts]


@contextlib.contextmanager
def probed(checkouts, _size):
    yield [Run(probe.PYTHON, script=probe.script(each.bin / "nodetune")) for each in checkouts]


@contextlib.contextmanager
def guard_entry(checkouts, _size):
    """The entry for a job with all GPUs of a stand-in NVML, which no earlier pass answers."""
    with tempfile.TemporaryDirectory() as name:
        library = install.stand_in(Path(name) / "nvml")
        yield [entry(each, f"{name}/{number}", library) for number, each in enumerate(checkouts)]


def entry(checkout, folder, library):
    command = [checkout.bin / "python", "-c", NODE, folder, library]
    made = subprocess.run(command, cwd=checkout.folder, capture_output=True, text=True, check=True).stdout
    prolog, passes, environment = json.loads(made)
    return Run(["/bin/sh", prolog], environment, forget=passes)


CASES = {
    "start-up": (start_up, 0, 0),
    "logins-40": (audit_logins, 40, 1),
    "logins-300": (audit_logins, 300, 2),
    "report": (report, 10_000, 3),
    "probe": (probed, 0, 0),
    "guard-entry": (guard_entry, 0, 0),
}
"""Name → (what makes the two runs, its size, its smallest size)."""


@benchmark(__doc__, rounds=1, small=True)
@click.argument("other", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@click.argument("cases", nargs=-1, metavar="[CASE]...", type=click.Choice([*CASES]))
@click.option("--rounds", default=5, type=COUNT, show_default=True)
def main(other, cases, rounds, small=False):
    if other != HERE and not (other / ".venv/bin/nodetune").exists():
        raise click.UsageError(f"{other} has no .venv/bin/nodetune: run `make try` there")
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        own = Checkout(HERE, BIN, f"{cache}/own")
        checkouts = [own, Checkout(other, BIN if other == HERE else other / ".venv" / "bin", f"{cache}/other")]
        for name in cases or CASES:
            make, size, smallest = CASES[name]
            click.echo(f"measuring {name}", err=True)
            with make(checkouts, smallest if small else size) as runs:
                if not small:
                    once(runs, 0)
                found[name] = ratios([once(runs, number) for number in range(rounds)])
    return found


def once(runs, number):
    """The costs of both runs; every second time the other one comes first."""
    order = range(2) if number % 2 else (1, 0)
    costs = {}
    for at in order:
        if runs[at].forget:
            shutil.rmtree(runs[at].forget, ignore_errors=True)
        costs[at] = cost(*runs[at][:3])
    return costs[0], costs[1]


def ratios(rounds):
    """In words: medians of CPU and wall time, their ratio, and the lowest and highest ratio of a round."""
    found = []
    for at, kind in enumerate(("CPU", "wall")):
        own, other = (statistics.median(each[side][at] for each in rounds) for side in range(2))
        each = [one[at] / two[at] for one, two in rounds]
        spread = f"{min(each):.2f} to {max(each):.2f}"
        found.append(f"{kind} {own:.3f} s, {other:.3f} s: {times(own, other, 2)} ({spread})")
    return "; ".join(found)


if __name__ == "__main__":
    main()

"""Measures what a history adds to an audit of saved hosts, in CPU and wall time: the same audit without one, with a first look
at each host, and with a second look a quarter of an hour later, when counters have grown and clocks and temperatures differ."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.support import synthetic_fleet
from benchmarks.support.measuring import BIN, COUNT, benchmark, cost
from nodetune.api.model import Each, Value
from nodetune.facts import document

FIRST, LATER = 1_780_000_000, 900


def later(host, noise):
    """Return the facts of a host a while later: numbers move, and no counter falls."""
    facts = dict(host.facts)
    noise.move(facts)
    return {name: _grown(host.facts[name], fact) if name in COUNTERS else fact for name, fact in facts.items()}


COUNTERS = {
    "gpu.pcie_replay_counter",
    "gpu.ecc_corrected_volatile",
    "net.carrier_changes",
    "rdma.counters",
    "pci.aer",
    "memory.edac.corrected",
    "tcp.segments",
}


def _grown(before, now):
    if isinstance(before, Each) and isinstance(now, Each):
        return Each({subject: _grown(one, now.of[subject]) for subject, one in before.of.items()})
    known = isinstance(before, Value) and isinstance(now, Value)
    return Value(_most(before.value, now.value)) if known else before


def _most(before, now):
    if isinstance(before, dict):
        return {key: _most(value, now.get(key, value)) for key, value in before.items()}
    return max(before, now) if isinstance(before, int) else before


def save(folder, count):
    """Write the facts of both looks at each host. Return their folders."""
    first, second = Path(folder) / "first", Path(folder) / "second"
    first.mkdir()
    second.mkdir()
    noise = synthetic_fleet.Noise(7)
    for host, _ in synthetic_fleet.hosts(count, 1, 0):
        about = {**host.about, "time": FIRST}
        (first / f"{host.host}.json").write_text(document.dump(replace(host, about=about)))
        moved = replace(host, facts=later(host, noise), about={**about, "time": FIRST + LATER})
        (second / f"{host.host}.json").write_text(document.dump(moved))
    return first, second


@benchmark(__doc__, count=3)
@click.argument("count", metavar="[HOSTS]", default=10_000, type=COUNT)
def main(count):
    with tempfile.TemporaryDirectory() as folder:
        first, second = save(folder, count)
        history = ["--history", f"{folder}/history.db"]
        print(f"{count} hosts, {len(os.sched_getaffinity(0))} cores")
        found = {}
        for title, facts, more in (("without", first, []), ("first look", first, history), ("later", second, history)):
            command = [f"{BIN}/nodetune", "audit", "--facts", str(facts), "-o", os.devnull, "--fail-on", "never"]
            found[title] = cost([*command, *more])
            print(f"{title:11} wall {found[title].wall:6.1f} s   CPU {found[title].cpu:6.1f} s")
        size = sum(each.stat().st_size for each in Path(folder).glob("history.db*")) / 1e6
    without, *looks = found.values()
    share = ", ".join(f"{100 * (each.cpu / without.cpu - 1):.0f} %" for each in looks)
    each = ", ".join(f"{1000 * (each.cpu - without.cpu) / count:.1f}" for each in looks)
    return {"history_cost": f"{share}; {each} ms a host, {size:.0f} MB"}


if __name__ == "__main__":
    main()

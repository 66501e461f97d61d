"""Measures what a history adds to an audit of saved hosts, in CPU and wall time: of a first look at each host, and of a second look
a quarter of an hour later, when counters have grown and clocks and temperatures differ. Each is compared with the audit of the same
facts without a history. All four are run in turn, and the medians of their differences are shown. Python has compiled all that they
import, as on an installed controller. --ssh: hosts behind real SSH logins, which answer with the same facts at both looks."""

import contextlib
import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.support import logins, synthetic_fleet
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


@benchmark(__doc__, count=3, rounds=1)
@click.argument("count", metavar="[HOSTS]", default=10_000, type=COUNT)
@click.argument("rounds", default=3, type=COUNT)
@click.option("--url", help="A PostgreSQL database instead of a file; it must be empty.")
@click.option("--ssh", is_flag=True, help="Audit over SSH instead of from saved facts.")
def main(count, rounds, url, ssh):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if ssh:
            served = stack.enter_context(logins.farm(count, replayed=True))
            first = second = logins.audit(served, served.targets, 64)
        else:
            first, second = (
                [f"{BIN}/nodetune", "audit", "--facts", each, "--fail-on", "never"] for each in save(folder, count)
            )
        print(f"{count} hosts, {len(os.sched_getaffinity(0))} cores")
        environment = compiled(Path(folder))
        found = [audits(Path(folder), first, second, url, environment) for _ in range(1 if url else rounds)]
        size = sum(each.stat().st_size for each in Path(folder).glob("history.db*")) / 1e6
    shares, each = [], []
    for look in (0, 1):
        pairs = [(costs[look][1].cpu, costs[look][0].cpu) for costs in found]
        shares.append(f"{100 * (statistics.median(more / less for more, less in pairs) - 1):.0f} %")
        each.append(f"{1000 * statistics.median(more - less for more, less in pairs) / count:.1f}")
    if ssh:
        print(", ".join(shares))
        return {}
    return {"history_cost": f"{', '.join(shares)}; {', '.join(each)} ms a host, {size:.0f} MB"}


def compiled(folder):
    """Return an environment in which all is compiled that an audit imports: some are told to keep nothing of that."""
    few = folder / "few"
    few.mkdir()
    for host, _ in synthetic_fleet.hosts(2, 1, 0):
        (few / f"{host.host}.json").write_text(document.dump(host))
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    kept = ["--history", f"{folder}/few.db", "--fail-on", "never"]
    cost([f"{BIN}/nodetune", "audit", "--facts", few, *kept], environment)
    return environment


def audits(folder, first, second, url, environment):
    """Run the audit of each look without a history and with one. Return what each costs, by look."""
    for old in folder.glob("history.db*"):
        old.unlink()
    history = ["--history", url or f"{folder}/history.db"]
    found = []
    for title, command in (("first look", first), ("later look", second)):
        found.append([cost([*command, "-o", os.devnull, *more], environment) for more in ([], history)])
        for name, each in zip(("without", "with"), found[-1], strict=True):
            print(f"{title} {name:8} wall {each.wall:6.1f} s   CPU {each.cpu:6.1f} s")
    return found


if __name__ == "__main__":
    main()

"""Measures `nodetune status` on a history that every source has filled for 90 days: the fleet, one host, and each host and fault as CSV.
Faults come and go on hosts and their GPUs; each day is concluded as its commands would do it."""

import random
import sys
import tempfile

import click

from benchmarks.support.measuring import BIN, COUNT, benchmark, cost
from nodetune import checks
from nodetune.api import faults
from nodetune.api.conclusion import OPEN, UNKNOWN, WAIVED, Action, Conclusion, Examination, Examined, Judged, Next
from nodetune.api.device import Device
from nodetune.history.history import History
from nodetune.history.points import DAY

DAILY = ("reach", "audit", "guard", "trend", "episodes")
"""Sources of each day; the others look once a week."""

LASTING, NEW, GPUS = 12, 0.02, 8
"""Faults that a host keeps, the chance of another one a day and source, and the GPUs of a host."""


class Fleet:
    """Hosts with what is wrong with them, by source."""

    def __init__(self, count, seed):
        self.random = random.Random(seed)
        self.hosts = [f"gpu{number:04d}" for number in range(count)]
        known = sorted(checks.catalogue())
        self.lasting = {name: checks.load(name).severity for name in self.random.sample(known, LASTING)}
        self.known = {"audit": {name: checks.load(name).severity for name in known}}
        self.known["guard"] = {
            name: "critical" for name, severity in self.known["audit"].items() if severity == "critical"
        }
        for row in faults.TABLE:
            self.known.setdefault(row.source, {})[row.id] = row.severity
        self.wrong = {}

    def day(self, source, at):
        """Return what a source concludes about all hosts: old faults end, new ones begin."""
        known = self.known[source]
        judged = tuple(Judged(fault) for fault in known)
        concluded, looked = [], []
        for host in self.hosts:
            wrong = self.wrong.setdefault((source, host), {} if source != "audit" else dict.fromkeys(self.lasting))
            for fault in [each for each in wrong if each not in self.lasting and self.random.random() < 0.2]:
                del wrong[fault]
            if self.random.random() < NEW:
                wrong[self.random.choice(list(known))] = self.random.randrange(GPUS)
            concluded += [self.conclusion(source, host, at, fault, gpu) for fault, gpu in wrong.items()]
            unread = (
                {"gpu-ecc-off": "needs root (--become)"} if source == "audit" and self.random.random() < 0.1 else {}
            )
            looked.append(Examination(source, host, at, "0.2.0", judged, unread))
        return Examined(tuple(concluded), tuple(looked))

    def conclusion(self, source, host, at, fault, gpu):
        device = None if gpu is None else Device(f"GPU{gpu}", f"0000:{gpu}b:00.0", serial=f"{host}-{gpu}", kind="gpu")
        state = self.random.choice((OPEN,) * 18 + (WAIVED, UNKNOWN)) if gpu is not None else OPEN
        return Conclusion(
            fault, source, (host,), self.known[source][fault], f"What is wrong: {fault}", at, device, state=state,
            observed="1", wanted="0", next=Next("plan", ("-s", fault), (host,)), evidence=("a line of the log",) * 3,
        )  # fmt: skip


def fill(file, hosts, days, end):
    """Write the history."""
    fleet = Fleet(hosts, 55)
    with History(file) as history:
        for day in range(days):
            at = end - (days - day) * DAY + DAY // 2
            for source in fleet.known:
                if source in DAILY or day % 7 == 0:
                    history.conclude(fleet.day(source, at))
            some = fleet.random.sample(fleet.hosts, max(1, hosts // 100))
            for number, kind in enumerate(("drained", "rebooted", "resumed")):
                history.act(Action(kind, host, at + number, "slurm", "Kill task failed") for host in some)


@benchmark(__doc__, hosts=20, days=3)
@click.argument("hosts", default=2000, type=COUNT)
@click.argument("days", default=90, type=COUNT)
def main(hosts, days):
    import time

    with tempfile.TemporaryDirectory() as folder:
        fill(file := f"{folder}/history.db", hosts, days, int(time.time()))
        command = [sys.executable, f"{BIN}/nodetune", "status", "--history", file]
        found = {}
        for name, more in (("fleet", []), ("host", ["gpu0007"]), ("rows", ["--format", "csv"])):
            runs = [cost([*command, *more], expected=(0, 1, 3)) for _ in range(3)]
            found[name] = min(each.wall for each in runs), max(each.peak for each in runs)
            print(f"{name:6} {found[name][0]:.2f} s, {found[name][1]:.0f} MiB")
    told = ", ".join(f"{wall:.1f} s" for wall, _ in found.values())
    return {"status": f"{told}; {max(peak for _, peak in found.values()):.0f} MiB"}


if __name__ == "__main__":
    main()

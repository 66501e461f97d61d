"""Measures how a history grows: hosts made from fact files of real machines, a look at each every 15 minutes for three days, through
the history itself. Then the days are thinned. From what a look and a thinned day take follow 90 days of 1,000 hosts."""

import sqlite3
import tempfile
import time
from contextlib import closing

import click

from benchmarks.history_cost import later
from benchmarks.support import synthetic_fleet
from benchmarks.support.measuring import COUNT, benchmark
from nodetune.api.model import HostFacts
from nodetune.history.history import History
from nodetune.history.points import DAY
from nodetune.history.snapshot import Sorter

START, EVERY = 20_700 * DAY, 900
WEEK, QUARTER, FLEET = 7, 90, 1000


@benchmark(__doc__, hosts=2, days=1)
@click.argument("hosts", default=40, type=COUNT)
@click.argument("days", default=3, type=COUNT)
def main(hosts, days):
    noise, sorter, spent = synthetic_fleet.Noise(7), Sorter(), 0.0
    fleet = [host for host, _ in synthetic_fleet.hosts(hosts, 1, 0)]
    with tempfile.TemporaryDirectory() as folder, History(file := f"{folder}/history.db") as history:
        first = 0
        for at in range(START, START + days * DAY, EVERY):
            fleet = [HostFacts(host.host, later(host, noise), {"time": at}) for host in fleet]
            begun = time.process_time()
            history.record([sorter.look(host) for host in fleet])
            spent += time.process_time() - begun
            first = first or size(file)
        looks = (size(file) - first) / hosts / (days * DAY / EVERY - 1)
        begun = time.process_time()
        rows = history.thin(START + (days + WEEK + 1) * DAY)
        thinning = (time.process_time() - begun) / hosts / days
        thinned = (size(file) - first) / hosts / days
        begun = time.perf_counter()
        history.series(fleet[0].host, "gpu.temperature/GPU0")
        asked = time.perf_counter() - begun
    each = 1000 * spent / hosts / (days * DAY / EVERY)
    print(
        f"{hosts} hosts, {days} days: {looks:.0f} bytes and {each:.2f} ms of CPU time a look; a query took {asked:.3f} s"
    )
    print(f"thinned: {rows / hosts / days:.0f} rows and {thinned:.0f} bytes a host and day, {1000 * thinning:.0f} ms")
    total = FLEET * (WEEK * DAY / EVERY * looks + (QUARTER - WEEK) * thinned)
    return {"history_growth": f"{looks:.0f} B, {each:.1f} ms; {total / 1e9:.2f} GB"}


def size(file):
    """Return the bytes that tables and indexes use."""
    pages = "pragma_page_count(), pragma_freelist_count(), pragma_page_size()"
    with closing(sqlite3.connect(file)) as database:
        return database.execute(f"SELECT (page_count - freelist_count) * page_size FROM {pages}").fetchone()[0]


if __name__ == "__main__":
    main()

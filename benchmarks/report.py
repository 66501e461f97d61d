"""Measures what an audit of thousands of saved hosts costs, as a page and as text: the command as a user starts it, over the
fact files of real and described machines, each a little different."""

import os

import click

from benchmarks.support import synthetic_fleet
from benchmarks.support.measuring import BIN, COUNT, benchmark, cost


@benchmark(__doc__, count=3)
@click.argument("count", metavar="[HOSTS]", default=10_000, type=COUNT)
def main(count):
    with synthetic_fleet.saved(count) as folder:
        size = sum(each.stat().st_size for each in folder.iterdir())
        print(f"{count} hosts, {size / 1e6:.0f} MB of facts, {len(os.sched_getaffinity(0))} cores")
        found, sizes = {}, {}
        for form in ("html", "text"):
            report = folder.parent / f"{folder.name}.{form}"
            command = [f"{BIN}/nodetune", "audit", "--facts", str(folder), "--format", form, "-o", str(report)]
            found[form] = cost([*command, "--fail-on", "never"])
            sizes[form] = report.stat().st_size / 1e6
            report.unlink()
            cpu, wall, peak = found[form]
            print(
                f"{form:5} wall {wall:5.1f} s   CPU {cpu:5.1f} s   largest process {peak:4.0f} MiB   {sizes[form]:.1f} MB"
            )
    walls = ", ".join(f"{each.wall:.0f} s" for each in found.values())
    peak = max(each.peak for each in found.values())
    return {"report": f"{walls}; largest process {peak:.0f} MiB, page {sizes['html']:.1f} MB"}


if __name__ == "__main__":
    main()

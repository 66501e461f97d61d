"""Finds out whether the comparison of hosts finds every difference that is planted in a synthetic fleet, and reports nothing
else; and what that costs in time and memory."""

import resource
import sys
import time
from collections import Counter

import click

from benchmarks.support.measuring import COUNT, benchmark
from benchmarks.support.synthetic_fleet import hosts
from nodetune.audit import fleet


@benchmark(__doc__, count=100)
@click.argument("count", metavar="[HOSTS]", default=10_000, type=COUNT)
@click.argument("seed", default=1)
def main(count, seed):
    census, planted, spent = fleet.FleetComparison(), set(), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for facts, fault in hosts(count, seed, each=max(2, count // 500)):
        start = time.process_time()
        census.add(facts)
        spent += time.process_time() - start
        if fault:
            planted.add((facts.host, fault))
    start = time.process_time()
    failing = failures(fleet.findings(census))
    judging = time.process_time() - start
    kinds = len({fault for _, fault in planted})
    print(f"{count} hosts, {len(census.comparisons)} comparisons, {len(planted)} planted differences of {kinds} kinds")
    for title, wrong in {"not planted": failing - planted, "not found": planted - failing}.items():
        for name, number in Counter(name for _, name in wrong).most_common():
            print(f"  {title}: {name} {number}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"taking in {spent:.1f} s ({1000 * spent / count:.2f} ms a host), judging {judging:.1f} s of one core")
    print(f"peak memory {peak // 1024} MiB, {(peak - before) // 1024} MiB of it for the fleet")
    found = f"{len(planted & failing)} of {len(planted)}; {len(failing - planted)}"
    if failing != planted:
        sys.exit(found)
    return {"fleet": found}


def failures(found):
    """(host, comparison) of each finding that fails."""
    every = ((host, each) for host, runs in found.items() for findings in runs for each in findings)
    return {(host, each.check) for host, each in every if each.status == "fail"}


if __name__ == "__main__":
    main()

"""Finds out whether one audit of HOSTS, of which some are broken, each in another way, reports every good host and names every
broken one for what it is; and what that costs. Real SSH logins on loopback addresses."""

import json
import re
import sys

import click

from benchmarks.support import logins
from benchmarks.support.measuring import COUNT, benchmark, cost

from village import FAULTS, SLOW, UNREACHED  # isort: skip  (the import of logins says where it is)


MAX_FAILURES = 30
EVERY = [*UNREACHED.items(), *((name, fault) for name, fault in FAULTS.items() if fault.state != "ok")]
WAYS = dict(EVERY[:MAX_FAILURES])
QUICK_FIRST = sorted(WAYS, key=lambda name: name in SLOW)


@benchmark(__doc__, count=4, broken=2)
@click.argument("count", metavar="[HOSTS]", default=1000, type=COUNT)
@click.option("--broken", default=MAX_FAILURES, type=click.IntRange(1, MAX_FAILURES), show_default=True)
def main(count, broken):
    if broken >= count:
        raise click.UsageError("--broken must be less than HOSTS")
    chosen = {name: WAYS[name] for name in QUICK_FIRST[:broken]}
    reached, unreached = ({name: WAYS[name] for name in chosen if name in these} for these in (FAULTS, UNREACHED))
    good = count - len(chosen)
    with logins.farm(good, replayed=True, faults=reached, unreached=unreached) as served:
        output = served.folder / "audit.json"
        command = logins.audit(served, served.targets, 64, "--format", "json", "--output", str(output))
        _, wall, peak = cost(command, expected=(0, 3))
        hosts = {each["name"]: each for each in json.loads(output.read_text())["hosts"]}
    reported = sum(each["state"] == "ok" for name, each in hosts.items() if name not in chosen)
    wrong = [name for name, fault in chosen.items() if not named(fault, hosts[name])]
    for name in wrong:
        print(f"{name}: {hosts[name]['state']}: {hosts[name]['message']}")
    found = f"{reported} of {good}, {len(chosen) - len(wrong)} of {len(chosen)}"
    if wrong or reported != good:
        sys.exit(found)
    return {"broken_logins": f"{found}; {wall:.0f} s, {peak:.0f} MiB"}


def named(fault, host):
    return re.fullmatch(fault.state, host["state"]) and re.search(fault.says, host["message"])


if __name__ == "__main__":
    main()

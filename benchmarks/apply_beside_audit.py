"""Measures `nodetune apply` of HOSTS where nothing is to be done beside `nodetune audit` of the same hosts, with the checks that
all of them pass: real SSH logins on loopback addresses, and Ansible is not started."""

import json
import os

import click

from benchmarks.support import logins
from benchmarks.support.measuring import BIN, COUNT, benchmark, cost, times


@benchmark(__doc__, count=1)
@click.argument("count", metavar="[HOSTS]", default=20, type=COUNT)
def main(count):
    with logins.farm(count) as served:
        environment = {**os.environ, "NODETUNE_RUNS": str(served.folder / "runs")}
        hosts = ["-i", str(logins.inventory(served, served.targets)), "--forks", "16"]
        chosen = [*hosts, *(word for name in passing(served, hosts) for word in ("-s", name))]
        audit, apply = (
            cost([f"{BIN}/nodetune", *words, *chosen], environment)
            for words in (("audit", "--no-compare", "--fail-on", "never"), ("apply", "--yes"))
        )
    for name, (cpu, wall, _) in {"nodetune audit": audit, "nodetune apply": apply}.items():
        print(f"{name:16} CPU {cpu:5.1f} s   wall {wall:5.1f} s   {(len(chosen) - len(hosts)) // 2} checks")
    return {"apply_beside_audit": f"{times(apply.cpu, audit.cpu, 2)}, {times(apply.wall, audit.wall, 2)}"}


def passing(served, hosts):
    """The checks that every host passes."""
    output = served.folder / "audit.json"
    more = ["--no-compare", "--fail-on", "never", "--format", "json", "--output", str(output)]
    cost([f"{BIN}/nodetune", "audit", *hosts, *more], expected=(0, 3))
    findings = [each for host in json.loads(output.read_text())["hosts"] for each in host["findings"]]
    return {each["check"] for each in findings} - {each["check"] for each in findings if each["status"] != "pass"}


if __name__ == "__main__":
    main()

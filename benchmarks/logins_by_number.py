"""Measures what an audit of 1 host and of each number of HOSTS costs the controller: CPU and memory a host, and wall time beside
`ssh HOST true` by xargs at the same forks. Real SSH logins on loopback addresses; behind its login each host answers with
facts that were made before. Wall times are shared with the servers, CPU is that of the controller alone."""

import click

from benchmarks.support import logins
from benchmarks.support.measuring import COUNT, benchmark, cost, times


@benchmark(__doc__, hosts=(2,))
@click.argument("hosts", nargs=-1, type=click.IntRange(min=2))
@click.option("--forks", default=64, type=COUNT, show_default=True)
def main(hosts, forks):
    counts = sorted({*hosts} or {10, 100, 300, 1000})
    with logins.farm(counts[-1], replayed=True) as served:
        found = {count: one(served, served.targets[:count], forks) for count in (1, *counts)}
    each = {count: 1000 * (found[count][0].cpu - found[1][0].cpu) / (count - 1) for count in counts}
    for count, more in each.items():
        print(f"{more:5.1f} ms of CPU for each host after the first of {count}")
    (own, ssh), last = found[max(found)], [*each][-3:]
    text = f"{', '.join(f'{each[count]:.0f}' for count in last)} ms at {', '.join(f'{count:,}' for count in last)}"
    beside = f"CPU {times(own.cpu, ssh.cpu)}, wall {times(own.wall, ssh.wall)} ({own.wall:.0f} s)"
    return {"logins_by_number": f"{text}; {beside}, {own.peak:.0f} MiB"}


def one(served, targets, forks):
    """The cost of an audit of these hosts, and of an ssh to each."""
    own = cost(logins.audit(served, targets, forks))
    names = " ".join(each.address for each in targets)
    every = f"printf '%s\\n' {names} | xargs -P{forks} -I@ ssh -n -F {served.config} @ true"
    ssh = cost(["sh", "-c", every])
    ratios = f"CPU {own.cpu:6.2f} s ({own.cpu / ssh.cpu:4.1f} x ssh), wall {own.wall:6.1f} s ({own.wall / ssh.wall:4.1f} x ssh)"
    print(f"{len(targets):5} hosts: {ratios}, peak {own.peak:4.0f} MiB", flush=True)
    return own, ssh


if __name__ == "__main__":
    main()

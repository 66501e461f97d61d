"""Measures what an audit of HOSTS costs the controller beside `ansible -m setup` and a testinfra script of ten sysctls: real SSH
logins on loopback addresses, everything at equal FORKS, one after the other. CPU is that of the controller's processes alone;
wall time is shared with the servers, which run on the same machine."""

import os
import sys

import click

from benchmarks.support import logins
from benchmarks.support.measuring import BIN, COUNT, benchmark, cost, times

SYSCTLS = "vm.swappiness vm.dirty_ratio vm.max_map_count kernel.pid_max net.core.somaxconn net.core.rmem_max net.core.wmem_max fs.file-max vm.overcommit_memory kernel.threads-max"
TESTINFRA = """
from concurrent.futures import ThreadPoolExecutor
import testinfra
def check(address):
    host = testinfra.get_host("ssh://" + address, ssh_config={config!r})
    for name in {names!r}:
        assert host.sysctl(name) is not None
with ThreadPoolExecutor({forks}) as pool:
    list(pool.map(check, {addresses!r}))
"""


@benchmark(__doc__, count=1, forks=1)
@click.argument("count", metavar="[HOSTS]", default=50, type=COUNT)
@click.argument("forks", default=16, type=COUNT)
def main(count, forks):
    environment = {**os.environ, "PATH": f"{BIN}:/usr/sbin:{os.environ['PATH']}"}
    with logins.farm(count) as served:
        hosts, addresses = str(logins.inventory(served, served.targets)), [each.address for each in served.targets]
        script = TESTINFRA.format(config=str(served.config), names=SYSCTLS.split(), forks=forks, addresses=addresses)
        commands = {
            "nodetune audit (all checks)": logins.audit(served, served.targets, forks),
            "ansible -m setup": [f"{BIN}/ansible", "all", "-i", hosts, "-m", "setup", "-f", str(forks)],
            "testinfra, ten sysctls": [sys.executable, "-c", script],
        }
        found = {name: cost(command, environment) for name, command in commands.items()}
    for name, (cpu, wall, _) in found.items():
        print(f"{name:28} controller CPU {cpu / count * 1000:6.1f} ms a host   wall {wall:5.1f} s")
    own, ansible, testinfra = found.values()
    cpus, walls = ([times(other[at], own[at]) for other in (ansible, testinfra)] for at in (0, 1))
    cpu = f"{own.cpu / count * 1000:.0f} ms; `ansible -m setup` {cpus[0]}, a testinfra script of ten sysctls {cpus[1]}"
    return {"logins_cpu": cpu, "logins_wall": f"{own.wall:.1f} s; Ansible {walls[0]}, testinfra {walls[1]}"}


if __name__ == "__main__":
    main()

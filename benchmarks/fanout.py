"""What fifty hosts cost the controller: nodetune audit beside `ansible -m setup` and a testinfra script of ten sysctls.

python benchmarks/fanout.py [HOSTS] [FORKS]: real SSH logins on loopback addresses, everything at equal forks, one run
after the other, ratios of one run. CPU is that of the controller's processes alone (the servers' is not counted); wall
time is shared with the servers, which run on the same machine.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integration"))

from cost import BIN, measured
from farm import Farm

SYSCTLS = "vm.swappiness vm.dirty_ratio vm.max_map_count kernel.pid_max net.core.somaxconn net.core.rmem_max net.core.wmem_max fs.file-max vm.overcommit_memory kernel.threads-max"


def inventory(farm: Farm, addresses: list[str]) -> Path:
    path = farm.folder / "hosts.ini"
    lines = [f"host{number:02} ansible_host={address}" for number, address in enumerate(addresses)]
    lines += ["[all:vars]", f"ansible_port={farm.port}", f"ansible_user={farm.user}"]
    lines += [f"ansible_python_interpreter={sys.executable}", f"ansible_ssh_private_key_file={farm.key}"]
    lines += [f'ansible_ssh_common_args="-o UserKnownHostsFile={farm.known_hosts} -F {farm.config}"']
    path.write_text("\n".join(lines) + "\n")
    return path


def testinfra_script(farm: Farm, addresses: list[str], forks: int) -> Path:
    path = farm.folder / "ten_sysctls.py"
    path.write_text(
        textwrap.dedent(f"""
        from concurrent.futures import ThreadPoolExecutor
        import testinfra
        def check(address):
            host = testinfra.get_host("ssh://{farm.user}@" + address + ":{farm.port}", ssh_config={str(farm.config)!r})
            for name in {SYSCTLS.split()!r}:
                assert host.sysctl(name) is not None
        with ThreadPoolExecutor({forks}) as pool:
            list(pool.map(check, {addresses!r}))
    """)
    )
    return path


def main() -> None:
    count, forks = (int(sys.argv[1]) if len(sys.argv) > 1 else 50), (int(sys.argv[2]) if len(sys.argv) > 2 else 16)
    Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(Path(folder))
        addresses = [farm.address() for _ in range(count)]
        farm.start(dict.fromkeys(addresses, ()))
        for each in addresses:
            farm.know(each)
        environment = {
            **os.environ,
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "PATH": f"{BIN}:/usr/sbin:{os.environ['PATH']}",
        }
        hosts = str(inventory(farm, addresses))
        commands = {
            "nodetune audit (all checks)": [
                f"{BIN}/nodetune",
                "audit",
                "-i",
                hosts,
                "--forks",
                str(forks),
                "--fail-on",
                "never",
            ],
            "ansible -m setup": [f"{BIN}/ansible", "all", "-i", hosts, "-m", "setup", "-f", str(forks)],
            "testinfra, ten sysctls": [sys.executable, str(testinfra_script(farm, addresses, forks))],
        }
        try:
            report(count, forks, {name: measured(name, command, environment) for name, command in commands.items()})
        finally:
            farm.stop()
            subprocess.run(["pkill", "-f", shlex.quote(str(farm.folder))], check=False)


def report(count: int, forks: int, results: dict[str, tuple[float, float]]) -> None:
    ours = next(iter(results.values()))
    print(f"{count} hosts on loopback, forks {forks}, {os.cpu_count()} cores shared with the servers")
    for name, (cpu, wall) in results.items():
        print(
            f"{name:28} controller CPU {cpu / count * 1000:6.1f} ms a host (x{cpu / ours[0]:.1f})   wall {wall:5.1f} s (x{wall / ours[1]:.1f})"
        )


if __name__ == "__main__":
    main()

"""What an audit of N hosts costs the controller, by N: CPU and memory a host, and wall time beside parallel ssh.

python benchmarks/scale.py [HOSTS ...] [--forks 64]      real SSH logins on loopback addresses; default 1 10 100 300 1000
python benchmarks/scale.py 1000 --broken 30              so many of them are broken, each in another way: is each named?

All hosts are this machine, which cannot run a thousand probes at once: behind its own login each host answers with facts that
were made before, of real and described machines and each a little different (see fleet.py). Wall times are shared with
the servers, CPU is that of the controller alone. `ssh` is `ssh HOST true` by xargs, at the same forks: one login a
host, and nothing asked.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integration"))

import fleet
from cost import BIN, measured_peak
from farm import Farm
from village import FAULTS, UNREACHED, settle

from nodetune.facts import document as facts_document
from nodetune.onhost import protocol

REPLAY = """
import os, re, sys
nonce = re.search(rb"^NONCE = '([0-9a-f]+)'", sys.stdin.buffer.read(), re.MULTILINE)[1]
answer = open(os.path.join({folder!r}, os.environ["SSH_CONNECTION"].split()[2]), "rb").read()
sys.stdout.buffer.write(answer.replace(b" NONCE ", b" " + nonce + b" "))
"""


def answer_with_facts(farm: Farm) -> None:
    """From now on, each host's python3 gives that host's facts instead of running what it is sent."""
    folder = farm.folder / "answers"
    folder.mkdir()
    for target, (host, _) in zip(farm.targets, fleet.hosts(len(farm.targets), 1, 0), strict=True):
        document = facts_document.dump(host).encode()
        (folder / target.address).write_bytes(protocol.encode(document, "NONCE"))
    script = farm.folder / "replay.py"
    script.write_text(REPLAY.format(folder=str(folder)))
    farm.script(farm.bin / "python3", f"exec {sys.executable} -I -S {script}")


def inventory(farm: Farm, targets: list) -> Path:
    """An inventory of these hosts, as a site would write it."""
    hosts = {
        each.name: {
            "ansible_host": each.address,
            "ansible_port": farm.port,
            "ansible_connection": each.connection,
            "ansible_ssh_common_args": " ".join(each.ssh_args),
            # a login's own PATH may lead elsewhere; broken hosts have each its own python3
            **({"ansible_python_interpreter": str(farm.bin / "python3")} if each.name.startswith("good") else {}),
        }
        for each in targets
    }
    path = farm.folder / f"hosts-{len(targets)}.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    return path


def audit(farm: Farm, targets: list, forks: int, *more: str) -> list[str]:
    command = [f"{BIN}/nodetune", "audit", "-i", str(inventory(farm, targets)), "--forks", str(forks)]
    return [*command, "--fail-on", "never", *more]


def by_ssh(farm: Farm, targets: list, forks: int) -> list[str]:
    names = " ".join(each.address for each in targets)
    return ["sh", "-c", f"printf '%s\\n' {names} | xargs -P{forks} -I@ ssh -n -F {farm.config} @ true"]


def curve(counts: list[int], forks: int) -> None:
    """CPU and peak memory of the controller, and wall time, for each number of hosts."""
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(Path(folder))
        ports = settle(farm, max(counts), {}, {})
        answer_with_facts(farm)
        try:
            print(f"forks {forks}, {os.cpu_count()} cores shared with the servers")
            start = 0.0
            for count in counts:
                some = farm.targets[:count]
                cpu, wall, peak = measured_peak("nodetune", audit(farm, some, forks))
                start = start or cpu
                ssh_cpu, ssh_wall, _ = measured_peak("ssh", by_ssh(farm, some, forks))
                more = f", {(cpu - start) / (count - 1) * 1000:5.1f} ms for each after the first" if count > 1 else ""
                print(
                    f"{count:5} hosts: CPU {cpu:6.2f} s ({cpu / ssh_cpu:4.1f} x ssh{more}), peak {peak:4.0f} MiB, "
                    f"wall {wall:6.1f} s ({wall / ssh_wall:4.1f} x ssh)",
                    flush=True,
                )
        finally:
            ports.close()
            farm.stop()


def broken(count: int, bad: int, forks: int) -> None:
    """One audit of hosts of which some are broken: what became of each."""
    faults = {name: fault for name, fault in FAULTS.items() if fault.state != "ok"}
    chosen = dict([*UNREACHED.items(), *faults.items()][:bad])
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(Path(folder))
        mine = {name: fault for name, fault in chosen.items() if name in faults}
        ports = settle(farm, count - len(chosen), mine, {name: None for name in chosen if name in UNREACHED})
        answer_with_facts(farm)
        output = farm.folder / "audit.json"
        try:
            command = audit(farm, farm.targets, forks, "--format", "json", "--output", str(output))
            cpu, wall, peak = measured_peak("nodetune", command, expected=(0, 3))
        finally:
            ports.close()
            farm.stop()
        hosts = {each["name"]: each for each in json.loads(output.read_text())["hosts"]}
    good = sum(each["state"] == "ok" for name, each in hosts.items() if name not in chosen)
    wrong = [
        f"{name}: {hosts[name]['state']}: {hosts[name]['message']}"
        for name, fault in chosen.items()
        if not re.fullmatch(fault.state, hosts[name]["state"]) or not re.search(fault.says, hosts[name]["message"])
    ]
    print(
        f"{count} hosts: {good} of {count - len(chosen)} good ones reported, {len(chosen) - len(wrong)} of {len(chosen)} broken ones named rightly"
    )
    print(f"CPU {cpu:.1f} s, peak {peak:.0f} MiB, wall {wall:.1f} s")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong) or good != count - len(chosen))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("hosts", nargs="*", type=int, default=[1, 10, 100, 300, 1000])
    asked.add_argument("--forks", type=int, default=64)
    asked.add_argument("--broken", type=int, default=0)
    given = asked.parse_args()
    Path("/run/sshd").mkdir(exist_ok=True)
    if given.broken:
        broken(given.hosts[0], given.broken, given.forks)
    else:
        curve(given.hosts, given.forks)


if __name__ == "__main__":
    main()

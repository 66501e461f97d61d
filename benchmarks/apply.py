"""What an apply costs: beside an audit where nothing is to be done, and beside the same settings written one task each.

python benchmarks/apply.py [HOSTS]: two measurements, ratios of one run each.

1. `nodetune apply` of tuned hosts (real SSH logins on loopback addresses) beside `nodetune audit` of the same hosts:
   Ansible is not started.
2. On virtual machines (root, QEMU; see docs/testing-fleet.md): an apply's Ansible part, beside a playbook that makes the
   same changes by one task of ansible.builtin each, beside both again with nothing left to do. Files, values and units only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "integration"), str(Path(__file__).parent)]

from cost import BIN, measured
from fanout import inventory
from farm import Farm

from nodetune.api.model import DISRUPTIONS
from nodetune.hosts import inventory as reading
from nodetune.hosts.target import ConnectionOptions
from nodetune.remediation import ansible
from tests.machines import inventory as fleet_inventory
from tests.machines import template
from tests.machines.pool import Fleet

MOST_DISRUPTIVE = "new sessions"
LONG = ["--timeout", "240"]


def tuned_hosts(count: int) -> None:
    """Apply and audit of hosts where the selected checks pass."""
    Path("/run/sshd").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(Path(folder))
        addresses = [farm.address() for _ in range(count)]
        farm.start(dict.fromkeys(addresses, ()))
        for each in addresses:
            farm.know(each)
        hosts = ["-i", str(inventory(farm, addresses))]
        environment = {**os.environ, "NODETUNE_RUNS": str(Path(folder) / "runs")}
        passing = _passing(hosts, environment)
        chosen = [*hosts, "--forks", "16", *(word for name in passing for word in ("-s", name))]
        try:
            audit = measured(
                "audit", [f"{BIN}/nodetune", "audit", *chosen, "--no-compare", "--fail-on", "never"], environment
            )
            apply = measured("apply", [f"{BIN}/nodetune", "apply", *chosen, "--yes"], environment)
        finally:
            farm.stop()
    print(f"{count} tuned hosts, {len(passing)} checks, {os.cpu_count()} cores shared with the servers")
    for name, (cpu, wall) in {"nodetune audit": audit, "nodetune apply": apply}.items():
        print(f"{name:16} CPU {cpu:5.1f} s (x{cpu / audit[0]:.2f})   wall {wall:5.1f} s (x{wall / audit[1]:.2f})")


def _passing(hosts: list[str], environment: dict[str, str]) -> list[str]:
    """The checks that every host passes."""
    said = subprocess.run(
        [f"{BIN}/nodetune", "audit", *hosts, "--no-compare", "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
    ).stdout
    verdicts: dict[str, set[str]] = {}
    for host in json.loads(said)["hosts"]:
        for found in host["findings"]:
            verdicts.setdefault(found["check"], set()).add(found["status"])
    return [check for check, statuses in verdicts.items() if statuses == {"pass"}]


def one_task_each() -> None:
    """The Ansible part of an apply beside single tasks, each on a fresh virtual machine, then once more on the same."""
    with Fleet(template.ensure()) as fleet, tempfile.TemporaryDirectory() as folder:
        one, other = (fleet(1)[0] for _ in range(2))
        groups = _groups(_hosts(folder, one))
        single = Path(folder) / "single.yml"
        single.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": list(tasks(groups))}]))
        figures = {}
        for state in ("to be done", "done already"):
            variables = {one.name: {"nodetune_run": f"bench-{state.partition(' ')[0]}", "nodetune_groups": groups}}
            figures[f"nodetune, {state}"] = _timed("remediate", _hosts(folder, one), variables)
        for state in ("to be done", "done already"):
            figures[f"one task each, {state}"] = _timed(single, _hosts(folder, other), {})
    changes = sum(len(group["changes"]) for group in groups)
    print(f"{changes} changes in {len(groups)} groups, {len(list(tasks(groups)))} tasks, one virtual machine, no KVM")
    ours = next(iter(figures.values()))
    for name, seconds in figures.items():
        print(f"{name:28} {seconds:6.1f} s (x{seconds / ours:.1f})")


def _hosts(folder: str, machine) -> Path:
    return fleet_inventory.write(Path(folder) / f"{machine.name}.yml", [machine])


def _groups(hosts: Path) -> list[dict]:
    """What a plan for the machine holds of the kinds of change that a task of ansible.builtin can make as well."""
    command = [f"{BIN}/nodetune", "plan", "-i", str(hosts), "--format", "json", *LONG]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (work,) = json.loads(said)["work"]
    groups = [
        {**group, "changes": [change for change in group["changes"] if _task(change)]}
        for group in work["groups"]
        if DISRUPTIONS.index(group["disruption"]) <= DISRUPTIONS.index(MOST_DISRUPTIVE)
    ]
    return [group for group in groups if group["changes"]]


def _timed(what, hosts: Path, variables) -> float:
    targets = reading.targets(str(hosts))
    start = time.perf_counter()
    outcomes = ansible.play(what, targets, variables, ansible.PlayOptions(ConnectionOptions().options))
    for outcome in outcomes.values():
        if outcome.state != "ok" or outcome.gathered("problems"):
            sys.exit(f"{what}: {outcome.host}: {outcome.message} {outcome.gathered('problems')}")
    return time.perf_counter() - start


def tasks(groups):
    """The same changes, each as a task of ansible.builtin."""
    folders = set()
    for group in groups:
        for change in group["changes"]:
            folder = str(Path(change.get("path", "/")).parent)
            if change["change"] == "file" and folder not in folders:
                folders.add(folder)
                yield {"name": folder, "ansible.builtin.file": {"path": folder, "state": "directory"}}
            yield {"name": f"{change['change']} {change.get('path', change.get('unit', ''))}", **_task(change)}


def _task(change):
    match change:
        case {"change": "file", "content": str()}:
            return {"ansible.builtin.copy": {"dest": change["path"], "content": change["content"], "mode": "0644"}}
        case {"change": "value", "path": str(), "value": str() | int()}:
            return {"ansible.builtin.shell": f"for f in {change['path']}; do echo '{change['value']}' > $f; done"}
        case {"change": "unit", "enabled": "enabled" | "disabled", "active": "started" | "stopped"}:
            state = {"name": change["unit"], "enabled": change["enabled"] == "enabled", "state": change["active"]}
            return {"ansible.builtin.systemd_service": state}
    return None


if __name__ == "__main__":
    tuned_hosts(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    one_task_each()

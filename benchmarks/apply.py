"""What an apply costs: beside an audit where nothing is to be done, and beside the same settings written one task each.

python benchmarks/apply.py [HOSTS]: two measurements, ratios of one run each.

1. `nodetune apply` of tuned hosts (real SSH logins on loopback addresses) beside `nodetune audit` of the same hosts:
   Ansible is not started.
2. On one virtual machine (root, QEMU; see docs/testing-fleet.md): an apply's Ansible part, beside a playbook that makes the
   same changes by one task of ansible.builtin each, beside both again with nothing left to do.
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

from fanout import BIN, inventory, measured
from farm import Farm

from nodetune import inventory as reading
from nodetune import playbook
from nodetune.workflow import Reach
from tests.fleet import inventory as fleet_inventory
from tests.fleet import template
from tests.fleet.pool import Fleet

DISRUPTIVE = "service restart"
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
            audit = measured("audit", [f"{BIN}/nodetune", "audit", *chosen, "--fail-on", "never"], environment)
            apply = measured("apply", [f"{BIN}/nodetune", "apply", *chosen, "--yes"], environment)
        finally:
            farm.stop()
    print(f"{count} tuned hosts, {len(passing)} checks, {os.cpu_count()} cores shared with the servers")
    for name, (cpu, wall) in {"nodetune audit": audit, "nodetune apply": apply}.items():
        print(f"{name:16} CPU {cpu:5.1f} s (x{cpu / audit[0]:.2f})   wall {wall:5.1f} s (x{wall / audit[1]:.2f})")


def _passing(hosts: list[str], environment: dict[str, str]) -> list[str]:
    """The checks that every host passes."""
    said = subprocess.run(
        [f"{BIN}/nodetune", "audit", *hosts, "--format", "json"], env=environment, capture_output=True, text=True
    ).stdout
    verdicts: dict[str, set[str]] = {}
    for host in json.loads(said)["hosts"]:
        for found in host["findings"]:
            verdicts.setdefault(found["check"], set()).add(found["status"])
    return [check for check, statuses in verdicts.items() if statuses == {"pass"}]


def one_task_each() -> None:
    """The Ansible part of an apply beside single tasks, on one virtual machine."""
    with Fleet(template.ensure()) as fleet, tempfile.TemporaryDirectory() as folder:
        machine = fleet(1)[0]
        hosts = fleet_inventory.write(Path(folder) / "hosts.yml", [machine])
        runs = Path(folder) / "runs"
        environment = {**os.environ, "NODETUNE_RUNS": str(runs)}
        options = ["-i", str(hosts), "--yes", "--max-disruption", DISRUPTIVE, *LONG]
        subprocess.run([f"{BIN}/nodetune", "apply", *options], env=environment, check=False, stdout=subprocess.DEVNULL)
        run = next(runs.iterdir())
        groups = json.loads(next((run / "changes").glob("*.json")).read_text())
        targets = reading.targets(str(hosts))
        subprocess.run(
            [f"{BIN}/nodetune", "rollback", run.name, "--yes", *LONG],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        single = Path(folder) / "single.yml"
        single.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": list(tasks(groups))}]))
        figures = {}
        for state in ("to be done", "done already"):
            ours = {
                target.name: {"nodetune_run": f"bench-{state[:2]}", "nodetune_groups": groups} for target in targets
            }
            figures[f"nodetune, {state}"] = _timed("remediate", targets, ours)
        subprocess.run([f"{BIN}/nodetune", "runs"], env=environment, check=True, stdout=subprocess.DEVNULL)
        machine.ssh("rm -f /etc/sysctl.d/zz-nodetune.conf")
        for state in ("first", "again"):
            figures[f"one task each, {state}"] = _timed(single, targets, {})
    changes = sum(len(group["changes"]) for group in groups)
    print(f"{changes} changes in {len(groups)} groups, {len(list(tasks(groups)))} tasks, one virtual machine, no KVM")
    ours = next(iter(figures.values()))
    for name, seconds in figures.items():
        print(f"{name:28} {seconds:6.1f} s (x{seconds / ours:.1f})")


def _timed(what, targets, variables) -> float:
    start = time.perf_counter()
    outcomes = playbook.play(what, targets, variables, playbook.Way(Reach().options))
    for outcome in outcomes.values():
        if outcome.state != "ok":
            sys.exit(f"{what}: {outcome.host}: {outcome.message}")
    return time.perf_counter() - start


def tasks(groups):
    """The same changes, each as a task of ansible.builtin."""
    for group in groups:
        for change in group["changes"]:
            task = _task(change)
            if task:
                yield {"name": f"{change['change']} {change.get('path', change.get('unit', ''))}", **task}


def _task(change):
    match change["change"]:
        case "file":
            folder = str(Path(change["path"]).parent)
            shell = {"cmd": f"mkdir -p {folder}", "creates": folder}
            return {"ansible.builtin.copy": {"dest": change["path"], "content": change["content"], "mode": "0644"}} | (
                {} if folder.startswith("/etc/s") else {"vars": shell}
            )
        case "value":
            return {"ansible.builtin.shell": f"for f in {change['path']}; do echo '{change['value']}' > $f; done"}
        case "unit":
            state = {"enabled": change.get("enabled") == "enabled", "name": change["unit"]}
            return {"ansible.builtin.systemd_service": state}
        case "run":
            verb, _, unit = change["run"].partition(" ")
            if verb == "restart":
                return {"ansible.builtin.systemd_service": {"name": unit, "state": "restarted"}}
    return None


if __name__ == "__main__":
    tuned_hosts(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    one_task_each()

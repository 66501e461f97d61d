"""Measures the Ansible part of an apply beside a playbook that makes the same changes by one task of ansible.builtin each, and both
again with nothing left to do: files, values and units, on two virtual machines (root, QEMU: see docs/project/testing-fleet.md). At its
smallest it changes files only, in two throw-away copies of this machine's file system (root)."""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import click
import yaml

from benchmarks.support.measuring import BIN, UnavailableError, benchmark, times
from nodetune.api.model import DISRUPTIONS
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.remediation.ansible import play
from tests.machines import inventory, template
from tests.machines.pool import Fleet
from tests.support import cell

MOST_DISRUPTIVE = "new sessions"
STATES = ("to be done", "done already")


@benchmark(__doc__, virtual=False)
def main(virtual=True):
    seconds, place = {}, machines if virtual else copies
    with tempfile.TemporaryDirectory() as folder, place() as (groups, (play_ours, play_single)):
        single = Path(folder) / "single.yml"
        single.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": list(tasks(groups))}]))
        for state in STATES:
            run = f"bench-{state.partition(' ')[0]}"
            seconds["nodetune", state] = timed(play_ours, "remediate", {"nodetune_run": run, "nodetune_groups": groups})
        for state in STATES:
            seconds["one task each", state] = timed(play_single, single, {})
    changes = sum(len(group["changes"]) for group in groups)
    print(f"{changes} changes in {len(groups)} groups, {len(list(tasks(groups)))} tasks")
    ours = seconds["nodetune", STATES[0]]
    for (name, state), taken in seconds.items():
        print(f"{name}, {state:14} {taken:6.1f} s")
    _, again, single, single_again = (times(each, ours) for each in seconds.values())
    return {"apply_beside_tasks": f"{ours:.1f} s, {single}; {again}, {single_again}"}


def timed(run, playbook, variables):
    start = time.perf_counter()
    state, said = run(playbook, variables)
    if state != "ok":
        sys.exit(f"{playbook}: {state}: {said}")
    return time.perf_counter() - start


@contextlib.contextmanager
def machines():
    """Two virtual machines: the groups of changes of a plan for the first, and what runs a playbook on each."""
    with Fleet(template.ensure()) as fleet, tempfile.TemporaryDirectory() as folder:
        made = [fleet(1)[0] for _ in range(2)]
        hosts = [inventory.write(Path(folder) / f"{each.name}.yml", [each]) for each in made]
        yield planned("-i", str(hosts[0]), "--timeout", "240"), [partial(play_on, each) for each in hosts]


def play_on(hosts, playbook, variables):
    (target,) = selection.targets(str(hosts))
    options = play.PlayOptions(ConnectionOptions().options)
    outcome = play.play(playbook, [target], {target.name: variables}, options)[target.name]
    problems = outcome.gathered("problems")
    return "problems" if problems else outcome.state, f"{outcome.message} {problems}"


@contextlib.contextmanager
def copies():
    """As `machines`, but two copies of this file system, and only files of a plan for a recorded host."""
    if why := cell.impossible():
        raise UnavailableError(why)
    groups = planned("--facts", "h200-x4", kinds=("file",))
    with cell.Cell() as one, cell.Cell() as other:
        yield groups, [partial(play_in, each) for each in (one, other)]


def play_in(copy, playbook, variables):
    if isinstance(playbook, Path):
        copy.write(str(playbook), playbook.read_text())
        playbook = str(playbook.with_suffix(""))
    outcome = copy.play(playbook, variables)
    problems = [each["result"]["problems"] for each in outcome["results"] if each["result"].get("problems")]
    return "problems" if problems else outcome["state"], f"{outcome['message']} {problems}"


def planned(*hosts, kinds=("file", "value", "unit")):
    """The groups of a plan with what a task of ansible.builtin can change as well."""
    command = [f"{BIN}/nodetune", "plan", *hosts, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (OK, INCOMPLETE):  # saved facts may lack what newer checks need
        raise click.ClickException(done.stderr)
    (work,) = json.loads(done.stdout)["work"]
    groups = [
        {**group, "changes": [change for change in group["changes"] if change["change"] in kinds and task(change)]}
        for group in work["groups"]
        if DISRUPTIONS.index(group["disruption"]) <= DISRUPTIONS.index(MOST_DISRUPTIVE)
    ]
    return [group for group in groups if group["changes"]]


def tasks(groups):
    """The same changes, each as a task of ansible.builtin."""
    folders = set()
    for change in (change for group in groups for change in group["changes"]):
        folder = str(Path(change.get("path", "/")).parent)
        if change["change"] == "file" and folder not in folders:
            folders.add(folder)
            yield {"name": folder, "ansible.builtin.file": {"path": folder, "state": "directory"}}
        yield {"name": f"{change['change']} {change.get('path', change.get('unit', ''))}", **task(change)}


def task(change):
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
    main()

"""The role of the collection nodetune.node gives a machine what apply gives it for the same values, and takes it back."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machines import inventory, place, witness
from tests.machines.test_apply import Controller
from tests.support.pages import ROOT

BIN = Path(sys.executable).parent
WRONG = """
echo always | tee /sys/kernel/mm/transparent_hugepage/enabled > /sys/kernel/mm/transparent_hugepage/defrag
sysctl -qw vm.swappiness=60 vm.max_map_count=65530
"""
CHECKS = (
    "thp-unsuitable",
    "thp-defrag-unsuitable",
    "swappiness-high",
    "max-map-count-low",
    "nmi-watchdog-on",
    "numa-balancing-on",
    "zone-reclaim-aggressive",
    "open-files-low",
)
SITE = """
checks:
  swappiness-high: {accept: 10, set: 10}
  thp-unsuitable: {accept: madvise, set: madvise}
  thp-defrag-unsuitable: {accept: madvise, set: madvise}
"""
"""The values of the role's defaults, where apply would take others for a virtual machine."""
SUBJECTS = ("thp", "sysctl", "limits")
PLAY = "- hosts: all\n  become: true\n  gather_facts: false\n  tasks:\n" + "".join(
    f"    - import_role: {{name: nodetune.node.tuning, tasks_from: {subject}}}\n" for subject in SUBJECTS
)
FILES = "su - op -c 'ulimit -Sn; ulimit -Hn'"


class Story(Controller):
    def hosts(self):
        site = self.folder / "site.yml"
        site.write_text(SITE)
        select = (word for check in CHECKS for word in ("--select", check))
        return "-i", str(self.inventory), "--site", str(site), "--timeout", "240", *select


@pytest.fixture(scope="module")
def machine(fleet):
    made = fleet(1)[0]
    made.ssh(WRONG)
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def play(machine, tmp_path_factory):
    """play(…) plays the role as a person does who logs in as `op`, and returns how many tasks changed something."""
    folder = tmp_path_factory.mktemp("ansible")
    become = {"ansible_become": True, "ansible_become_password": place.OP_PASSWORD, "ansible_ssh_timeout": 120}
    hosts = inventory.write(folder / "hosts.yml", [machine], user="op", **become)
    (folder / "play.yml").write_text(PLAY)
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTEST_"))}
    known = {"ANSIBLE_COLLECTIONS_PATH": str(folder), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_PIPELINING": "1"}
    env = {**plain, **known, "HOME": str(folder), "LC_ALL": "C.UTF-8", "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(*words):
        done = subprocess.run([*map(str, words)], env=env, cwd=folder, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, ROOT / "packaging/collection.py", folder)
    run("ansible-galaxy", "collection", "install", *folder.glob("*.tar.gz"), "-p", folder, "--offline")
    return lambda *words: int(re.search(r"changed=(\d+)", run("ansible-playbook", "-i", hosts, "play.yml", *words))[1])


def seen(machine):
    return {**witness.running(machine), "open files": machine.ssh(FILES).stdout.split()}


def test_the_role_of_the_collection_gives_what_apply_gives(machine, play, tmp_path):
    nodetune = Story(tmp_path, machine)
    before, files = seen(machine), witness.files(machine)
    applied = nodetune.apply("--yes")
    by_apply = witness.changed(before, seen(machine))
    assert {"sysctl vm.swappiness", "sysctl vm.max_map_count", "open files"} < set(by_apply)
    nodetune("rollback", applied["run"], "--yes", "--timeout", "240")
    assert witness.changed(before, seen(machine)) == {}
    assert play() > 0
    assert witness.changed(before, seen(machine)) == by_apply
    assert play() == 0
    assert play("-e", "nodetune_state=reverted") > 0
    assert witness.changed(before, seen(machine)) == {}
    assert witness.changed(files, witness.files(machine)) == {}

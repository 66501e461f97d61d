"""Hosts that send anything, behind a real sshd, in every command that talks to hosts: none crashes, and no good host is lost."""

import json
import os
import random
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from nodetune.facts import document
from nodetune.provision import lock as locks
from tests.support import provisioning
from tests.support import verify_records as records
from tests.support.hostile import EVIL, MACHINE, Done, hostile, planted, result, wrong

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("hostile")]

INSTALLED = {
    name: fact
    for name, fact in document.to_data(provisioning.running())["facts"].items()
    if name.startswith("packages.") or name == "host.os"
}
HOST = {**MACHINE, "facts": {**MACHINE["facts"], **INSTALLED}}
"""An untuned machine whose packages provisioning knows."""

MADE_UP = Path(__file__).with_name("made_up.py")
GOOD = ("good0", "good1")
SCONTROL = """case "$*" in
*node*) for name in %s; do printf 'NodeName=%%s State=DOWN+DRAIN Reason=nodetune: \\033]0;planted\\007\\n' $name; done;;
esac"""


def returned(rng):
    """What a module prints: now and then cut off."""
    text = json.dumps(result(rng))
    return text[: len(text) // 2] if rng.random() < 0.1 else text


def event(rng, measured):
    """What a host says while it measures."""
    record = {**rng.choice(measured), rng.choice(("samples", "unit", "subject", "metric")): wrong(rng)}
    kind = rng.choice(("begin", "step", "note", "record", "done", "tell"))
    odd = {
        rng.choice(EVIL): wrong(rng),
        "text": rng.choice(EVIL),
        "measurement": rng.choice(EVIL),
        "topic": "x",
        "number": 1,
    }
    return json.dumps({kind: rng.choice((record, planted(record, rng), odd, wrong(rng)))})


class Fleet:
    """Hostile hosts and two good ones, each a folder with what it says."""

    def __init__(self, farm, bad):
        self.farm, self.bad, self.hosts = farm, bad, {}
        self.folder = farm.folder
        measured = [each for each in records.whole() if each["measurement"] == "memory"]
        for number in range(bad):
            rng = random.Random(1000 + number)
            said = self.add(f"bad{number}", hostile(number, HOST))
            said["results"].write_text("\n".join(returned(rng) for _ in range(30)))
            ending = ['{"end": {}}'] if number % 2 else []
            said["events"].write_text("\n".join([event(rng, measured) for _ in range(40)] + ending))
        for name in GOOD:
            said = self.add(name, json.dumps({**HOST, "host": name}).encode())
            lines = [*({"record": each} for each in measured), {"end": {}}]
            said["events"].write_text("\n".join(map(json.dumps, lines)))
        farm.start({each["ansible_host"]: () for each in self.hosts.values()})
        self.inventory = farm.folder / "hosts.yml"
        common = {"ansible_user": farm.user, "ansible_port": farm.port, "ansible_ssh_common_args": f"-F {farm.config}"}
        self.inventory.write_text(yaml.safe_dump({"gpu": {"hosts": self.hosts, "vars": common}}))

    def add(self, name, facts):
        folder = self.folder / name
        folder.mkdir()
        python = self.farm.script(folder / "python3", f'exec {sys.executable} -I {MADE_UP} {folder} "$@"')
        address = self.farm.address()
        self.farm.know(address)
        self.hosts[name] = {"ansible_host": address, "ansible_python_interpreter": str(python)}
        (folder / "facts").write_bytes(facts)
        return {name: folder / name for name in ("events", "results")}

    def talked_to(self, mark):
        return {name for name in self.hosts if (self.folder / name / mark).exists()}

    def forget(self):
        for name in self.hosts:
            for mark in ("modules", "measured"):
                (self.folder / name / mark).unlink(missing_ok=True)


@pytest.fixture(scope="module", params=[12, pytest.param(20, marks=pytest.mark.full)])
def fleet(request, new_farm):
    return Fleet(new_farm(), request.param)


@pytest.fixture
def environment(tmp_path):
    own = {"NODETUNE_RUNS": str(tmp_path / "runs"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return {**os.environ, **own, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.fixture
def command(fleet, tmp_path, environment):
    """command("plan", …, codes=(0, 3)): the command over all of them, or over the hosts given with -l."""
    fleet.forget()

    def run(*words, codes=(0, 1, 3, 4)):
        return Done(tmp_path, [*words, "-i", fleet.inventory, "--timeout", "60"], environment).harmless(*codes)

    return run


def named(text, key="hosts"):
    return {each["name"]: each for each in json.loads(text)[key]}


def test_an_audit_names_all_hosts_and_judges_the_good_ones(fleet, command):
    found = named(command("audit", "--format", "json").text)
    assert found.keys() == fleet.hosts.keys()
    assert [found[name]["state"] for name in GOOD] == ["ok", "ok"]
    assert len(found["good0"]["findings"]) > 100


def test_a_dry_run_shows_what_it_would_change_on_the_good_ones(fleet, command):
    alone = named(command("apply", "--dry-run", "--format", "json", "-l", "good0", codes=(0, 4)).text)["good0"]
    done = command("apply", "--dry-run", "--format", "json", codes=(3, 4))
    assert named(done.text)["good0"] == alone
    assert alone["diffs"]
    assert len(fleet.talked_to("modules") - set(GOOD)) > fleet.bad / 3, "Ansible talked to hostile hosts, too"


def test_an_apply_to_hostile_hosts_is_recorded_and_undone(fleet, command, environment, tmp_path):
    asked = ("apply", "--yes", "--canary", "0", "--max-failures", "99", "--format", "json", "-l", "bad*")
    told = json.loads(command(*asked, codes=(4,)).text)
    assert len(fleet.talked_to("modules")) > fleet.bad / 3
    for more in ((), ("--diff",), ("--format", "json")):
        Done(tmp_path, ["runs", "show", told["run"], *more], environment).harmless(0)
    command("rollback", told["run"], "--dry-run", codes=(3, 4))
    command("rollback", told["run"], "--yes", codes=(3, 4))


def test_installing_the_guard_shows_the_policy_of_good_ones(fleet, command):
    found = named(command("guard", "diff", "--format", "json", codes=(3,)).text)
    assert found["good0"] == {**found["good1"], "name": "good0"}
    assert "gpu-lost" in found["good0"]["newly_gates"]
    assert "gpu-lost" in command("guard", "install", "--dry-run", codes=(4,)).text


def test_verify_judges_the_good_ones_by_their_own_figures(fleet, command):
    asked = ("verify", "--format", "json", "--only", "memory")
    alone = named(command(*asked, "-l", "good0", codes=(0,)).text)["good0"]
    found = named(command(*asked).text)
    assert found.keys() == fleet.hosts.keys()
    assert figures_of(found["good0"]) == figures_of(alone) == figures_of(found["good1"])
    assert len(figures_of(alone)) == 4
    assert len(fleet.talked_to("measured") - set(GOOD)) > fleet.bad / 3, "hostile hosts measured, too"
    command("verify", "--only", "memory")


def figures_of(host):
    return [(each["metric"], each["subject"], each["value"]) for each in host["measurements"]]


def test_the_guard_status_of_every_node_is_told(fleet, command, tmp_path):
    fleet.farm.script(tmp_path / "scontrol", SCONTROL % " ".join(fleet.hosts))
    found = named(command("guard", "status", "--format", "json", codes=(3,)).text, "nodes")
    assert found.keys() == fleet.hosts.keys()
    assert found["good0"] == {**found["good1"], "name": "good0"}
    assert (found["good0"]["reached"], found["bad4"]["reached"]) == (True, False)
    command("guard", "status", codes=(3,))


def test_a_lock_has_only_what_the_good_ones_answer(fleet, command, tmp_path):
    provisioning.site(tmp_path)
    (right,) = provisioning.lock().values()
    answer = json.dumps({"changed": False, "driver": right.driver, "versions": right.packages})
    with told_by_modules(fleet, answer):
        command("lock", "--site", tmp_path / "site.yml", "-o", tmp_path / "v.lock", codes=(3, 4))
    assert fleet.talked_to("modules") > set(GOOD)
    assert locks.read(tmp_path / "v.lock") == provisioning.lock()


@contextmanager
def told_by_modules(fleet, answer):
    """Let modules return this on the good ones."""
    for name in GOOD:
        (fleet.folder / name / "results").write_text(answer)
    yield
    for name in GOOD:
        (fleet.folder / name / "results").unlink()


def test_provisioning_shows_what_the_good_ones_would_get(fleet, command, tmp_path):
    provisioning.site(tmp_path)
    locks.write(tmp_path / "v.lock", provisioning.lock())
    asked = ("provision", "--dry-run", "--site", tmp_path / "site.yml", "--lock", tmp_path / "v.lock")
    alone = named(command(*asked, "--format", "json", "-l", "good0").text)["good0"]
    assert alone["diffs"]
    found = named(command(*asked, "--format", "json", codes=(3, 4)).text)
    assert found["good0"] == alone == {**found["good1"], "name": "good0"}
    assert len(fleet.talked_to("modules") - set(GOOD)) > fleet.bad / 3, "Ansible talked to hostile hosts, too"

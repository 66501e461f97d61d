"""Provisioning through real Ansible. The playbooks that touch packages are played by small ones of the same names, which keep
each host's state in a folder; what a probe would find there is told from that state. A whole run, an upgrade and Ctrl-C go
over real sshds; how the other runs go on does not depend on the connection. (Real packages, on machines that boot:
tests/machines.)
"""

import itertools
import json
import os
import re
import signal
import sys
import threading
import time

import pytest
import yaml
from click.testing import CliRunner

from nodetune.api.model import Value
from nodetune.audit import hosts as audit_hosts
from nodetune.cli.main import group
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK, TOO_SLOW
from nodetune.hosts.target import UnreachableError
from nodetune.provision import STAGES
from nodetune.provision import lock as locks
from nodetune.remediation.ansible import runner
from nodetune.verify import remote
from nodetune.verify.compare import MIN_RUNS
from tests.support import provisioning
from tests.support import verify_records as records
from tests.support.documents import valid
from tests.support.provisioning import DRIVER, NEWER

pytestmark = pytest.mark.timeout(600)

PROVISION = """
- hosts: all
  gather_facts: false
  vars: {place: "{{ ansible_python_interpreter | dirname }}"}
  tasks:
    - name: Hang
      raw: "touch {{ place }}/hanging; sleep 600"
      changed_when: false
      when: (place ~ '/hang') is exists
    - name: Repository
      raw: "false"
      changed_when: false
      when: (place ~ '/no-repository') is exists
    - name: Packages
      told_packages: {dest: "{{ place }}/installed.json", versions: "{{ nodetune_versions }}"}
    - name: Set up
      raw: "test ! -e {{ place }}/no-setup && touch {{ place }}/hanging && sleep 600"
      changed_when: false
      when: (place ~ '/no-setup') is exists or (place ~ '/hang-late') is exists
    - name: Log
      raw: "echo packages {{ nodetune_driver }} >> {{ place }}/log"
      changed_when: false
      when: not ansible_check_mode
"""
TOLD_PACKAGES = """#!/usr/bin/python
# WANT_JSON: a module of its own, because copy takes three turns, each as slow as the rest of the play
import json, os, sys
given = json.load(open(sys.argv[1]))
before = open(given["dest"]).read() if os.path.exists(given["dest"]) else ""
after = json.dumps(given["versions"], indent=1) + "\\n"
if not given["_ansible_check_mode"]:
    open(given["dest"], "w").write(after)
print(json.dumps({"changed": before != after, "diff": {"before": before, "after": after}}))
"""
REBOOT = """
- hosts: all
  gather_facts: false
  vars: {place: "{{ ansible_python_interpreter | dirname }}"}
  tasks:
    - name: Reboot
      raw: "echo reboot >> {{ place }}/log; test -e {{ place }}/no-boot || cp {{ place }}/installed.json {{ place }}/booted.json"
"""
SLURM = """
- hosts: all
  gather_facts: false
  vars: {{place: "{{{{ ansible_python_interpreter | dirname }}}}"}}
  tasks:
    - name: {name}
      raw: "echo {name} >> {{{{ place }}}}/log; {do}"
      register: done
      changed_when: done.rc == 0
      failed_when: false
"""
VERSIONS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Versions
      told_versions: {packages: "{{ nodetune_packages }}", branch: "{{ nodetune_branch }}"}
"""
TOLD_VERSIONS = f"""
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"packages": {{"type": "dict"}}, "branch": {{"type": "str"}}}})
driver = module.params["branch"] if "." in module.params["branch"] else "{DRIVER}"
names = [name for part in module.params["packages"].values() for name in part["packages"]]
kin = [name for part in ("driver", "fabric-manager", "persistenced") for name in module.params["packages"][part]["packages"]]
module.exit_json(changed=False, driver=driver, versions={{name: driver + "-1" if name in kin else "1.0-1" for name in names}})
"""


class Room:
    """Hosts whose state is in files, and what is said of them. A host's folder is where its Python lies."""

    def __init__(self, folder, farm, monkeypatch):
        self.folder, self.farm, self.hosts = folder, farm, {"gpu1": farm.good[0], "gpu2": farm.good[1]}
        self.connection = "local"
        self.gone, self.figures, self.asked = set(), {}, []
        self.runs = folder / "runs"
        for address in self.hosts.values():
            (folder / address).mkdir()
            farm.script(folder / address / "python3", f'exec {sys.executable} "$@"')
        self._playbooks(monkeypatch)
        monkeypatch.setenv("NODETUNE_RUNS", str(self.runs))
        monkeypatch.setattr(audit_hosts, "collect", self.collect)
        monkeypatch.setattr(remote, "measure", self.measure)
        provisioning.site(folder)
        locks.write(folder / "v.lock", self.lock(DRIVER))

    def lock(self, driver):
        return {"debian-12-x86_64": provisioning.locked(driver)}

    def _playbooks(self, monkeypatch):
        home = self.folder / "playbooks"
        (home / "library").mkdir(parents=True)
        (home / "library" / "told_versions.py").write_text(TOLD_VERSIONS)
        (home / "library" / "told_packages.py").write_text(TOLD_PACKAGES)
        texts = {
            "provision": PROVISION,
            "versions": VERSIONS,
            "reboot": REBOOT,
            "drain": SLURM.format(name="drain", do="touch {{ place }}/drained"),
            "resume": SLURM.format(name="resume", do="rm {{ place }}/drained"),
        }
        for name, text in texts.items():
            (home / f"{name}.yml").write_text(text)
        monkeypatch.setattr(runner, "_path", lambda name: home / f"{name}.yml")

    def place(self, host):
        return self.folder / self.hosts[host]

    def mark(self, host, name):
        (self.place(host) / name).touch()

    def unmark(self, host, name):
        (self.place(host) / name).unlink()

    def log(self, host):
        path = self.place(host) / "log"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def state(self, host, name):
        path = self.place(host) / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def facts(self, host):
        if host in self.gone:
            return UnreachableError("refused", "nothing listens on port 22")
        installed, booted = self.state(host, "installed"), self.state(host, "booted")
        rows = {name: {"version": of, "maker": provisioning.MAKER} for name, of in (installed or {}).items()}
        if booted is None:
            return provisioning.bare(host, packages__installed=Value(rows))
        return provisioning.running(host, locks.upstream(booted["nvidia-driver-cuda"]), packages__installed=Value(rows))

    def collect(self, targets, names, _reach):
        self.asked.append(set(names))
        yield from ((target, self.facts(target.name), 0.1) for target in targets)

    def measure(self, targets, plan_for, reach):
        wanted = {target.name: self.figures.get(target.name, [records.whole()]) for target in targets}
        yield from records.Player(**wanted)(targets, plan_for, reach)

    def inventory(self):
        common = {
            "ansible_connection": self.connection,
            "ansible_user": self.farm.user,
            "ansible_port": self.farm.port,
            "ansible_ssh_common_args": f"-F {self.farm.config}",
        }
        hosts = {
            host: {"ansible_host": address, "ansible_python_interpreter": f"{self.place(host)}/python3"}
            for host, address in self.hosts.items()
        }
        path = self.folder / "hosts.yml"
        path.write_text(yaml.safe_dump({"gpu": {"hosts": hosts, "vars": common}}))
        return str(path)

    def __call__(self, *words, code=OK):
        """nodetune provision; its document."""
        done = self.run("provision", "--lock", f"{self.folder}/v.lock", "--yes", "--format", "json", *words)
        assert done.return_value == code, done.output
        return valid("provision", done.stdout)

    def run(self, command, *words):
        common = ["-i", self.inventory(), "--site", f"{self.folder}/site.yml"]
        return CliRunner().invoke(group, [command, *common, *words], standalone_mode=False, catch_exceptions=False)

    def site(self, more):
        provisioning.site(self.folder, provisioning.SITE + more)


@pytest.fixture
def room(tmp_path, farm, monkeypatch):
    return Room(tmp_path, farm, monkeypatch)


@pytest.fixture
def over_ssh(room):
    room.connection = "ssh"


def states(told, host="gpu1"):
    (found,) = [each for each in told["hosts"] if each["name"] == host]
    return {each["stage"]: each["state"] for each in found["stages"]}


def message(told, stage, host="gpu1"):
    (found,) = [each for each in told["hosts"] if each["name"] == host]
    return next(each["message"] for each in found["stages"] if each["stage"] == stage)


def next_command(told, host="gpu1"):
    return next(each["next"] for each in told["hosts"] if each["name"] == host)


def record(room, told, name="provision"):
    return json.loads((room.runs / told["run"] / f"{name}.json").read_text())


WELL = {
    "preflight": "done",
    "packages": "done",
    "reboot": "done",
    "tune": "nothing to do",
    "audit": "done",
    "verify": "done",
    "baseline": "left out",
    "guard": "left out",
    "join": "left out",
}


@pytest.mark.usefixtures("over_ssh")
def test_bare_hosts_pass_all_stages_once(room):
    told = room()
    assert list(states(told)) == list(STAGES)
    assert states(told) == states(told, "gpu2") == WELL
    assert room.log("gpu1") == [f"packages {DRIVER}", "reboot"]
    assert record(room, told)["hosts"] == told["hosts"]
    assert record(room, told, "run")["exit"] == OK
    again = states(room())
    assert (again["packages"], again["reboot"]) == ("nothing to do", "nothing to do")
    assert room.log("gpu1").count("reboot") == 1


def test_a_failed_host_stops_and_the_next_command_completes_it(room):
    room.mark("gpu1", "no-repository")
    told = room(code=END_STATE_MISSED)
    assert states(told, "gpu2") == WELL
    assert list(states(told).values()) == ["done", "failed"] + ["not reached"] * 7
    assert message(told, "packages").startswith("Repository: ")
    words = next_command(told).split()
    assert words[-4:] == ["-l", "gpu1", "--from", "packages"]
    room.unmark("gpu1", "no-repository")
    assert states(room(*words[-4:])) == WELL


@pytest.mark.full
def test_a_driver_that_does_not_come_up_is_told_at_the_reboot(room):
    room.mark("gpu1", "no-boot")
    told = room(code=END_STATE_MISSED)
    assert states(told)["reboot"] == "failed"
    assert "after the reboot: nouveau is loaded" in message(told, "reboot")
    assert states(told, "gpu2") == WELL


def test_a_host_that_is_not_reached_costs_only_itself(room):
    room.gone.add("gpu2")
    told = room(code=INCOMPLETE)
    assert states(told) == WELL
    assert message(told, "preflight", "gpu2") == "refused: nothing listens on port 22"


@pytest.mark.full
def test_a_slow_measurement_keeps_a_host_out_of_service(room):
    room.site("  join: slurm\n")
    room.figures["gpu1"] = [records.whole(**{f"gpu_copy h2d GPU{gpu}": 20.0 for gpu in range(8)})]
    told = room(code=TOO_SLOW)
    assert states(told)["verify"] == "failed"
    assert "gpu_copy h2d GPU0" in message(told, "verify")
    assert states(told)["join"] == "not reached"
    assert "resume" not in room.log("gpu1")


@pytest.mark.parametrize(
    "stage",
    ["packages", *(pytest.param(each, marks=pytest.mark.full) for each in ("reboot", "tune", "audit")), "verify"],
)
def test_an_interrupted_stage_can_be_completed(room, stage, monkeypatch):
    room.connection = "ssh" if stage == "packages" else "local"
    with interrupted_at(room, stage, monkeypatch):
        told = room(code=END_STATE_MISSED)
    assert states(told)[stage] == "failed"
    assert "Ctrl-C" in message(told, stage)
    after = STAGES[STAGES.index(stage) + 1 :]
    assert {states(told)[each] for each in after} == {"not reached"}
    assert record(room, told, "run")["ended"]
    assert list(states(room()).values())[:6].count("failed") == 0


class interrupted_at:  # noqa: N801  (used as a function)
    """Ctrl-C while this stage is under way: a real signal during a play, an exception where nodetune itself waits."""

    def __init__(self, room, stage, monkeypatch):
        self.room, self.stage, self.patch = room, stage, monkeypatch
        self.mark = {"packages": "hang", "set up": "hang-late"}.get(stage)

    def __enter__(self):
        if self.mark:
            self.room.mark("gpu1", self.mark)
            threading.Thread(target=self._signal, daemon=True).start()
            return
        where = {"verify": (remote, "measure")}.get(self.stage, (audit_hosts, "collect"))
        # what the stages look at: look 1, reboot 2 and 3, tune 4, audit 5
        self.left = {"verify": 1, "reboot": 2, "tune": 4, "audit": 5}[self.stage]
        self.where, self.real = where, getattr(*where)
        self.patch.setattr(*where, self._interrupting)

    def _interrupting(self, *given):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        yield from self.real(*given)

    def _signal(self):
        end = time.monotonic() + 60
        while not (self.room.place("gpu1") / "hanging").exists() and time.monotonic() < end:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    def __exit__(self, *_):
        if self.mark:
            self.room.unmark("gpu1", self.mark)
        else:
            self.patch.setattr(*self.where, self.real)


@pytest.mark.full
def test_only_one_stage_looks_and_does_that(room):
    room()
    told = states(room("--only", "verify"))
    assert {stage for stage, state in told.items() if state != "left out"} == {"preflight", "verify"}


@pytest.mark.full
def test_later_hosts_are_compared_with_the_first_hosts_baseline(room):
    room.site("  baseline: baselines/good.json\n")
    assert states(room("-l", "gpu1"))["baseline"] == "done"
    kept = valid("baseline", (room.folder / "baselines" / "good.json").read_text())
    assert "memory" not in {each["measurement"] for each in kept["figures"]}, "nothing proves it"
    slow = records.whole(**{f"gpu_copy h2d GPU{gpu}": 45.0 for gpu in range(8)})
    room.figures["gpu2"] = [slow]
    told = room("-l", "gpu2", code=TOO_SLOW)
    assert states(told, "gpu2")["verify"] == "failed"
    room.figures["gpu2"] = [records.whole()]
    assert message(room("-l", "gpu2"), "baseline", "gpu2") == "compared with good.json"


def test_hosts_drained_by_the_run_are_resumed_unless_they_failed(room):
    room.mark("gpu1", "no-setup")
    told = room("--drain", "slurm", code=END_STATE_MISSED)
    assert room.log("gpu2") == ["drain", f"packages {DRIVER}", "reboot", "resume"]
    assert room.log("gpu1") == ["drain"]
    assert (room.place("gpu1") / "drained").exists()
    assert states(told)["packages"] == "failed"


@pytest.mark.full
def test_join_resumes_what_a_failed_run_had_drained(room):
    room.site("  join: slurm\n")
    room.mark("gpu1", "no-setup")
    room("--drain", "slurm", "-l", "gpu1", code=END_STATE_MISSED)
    room.unmark("gpu1", "no-setup")
    told = room("-l", "gpu1")
    assert states(told)["join"] == "done"
    assert not (room.place("gpu1") / "drained").exists()


def test_a_dry_run_shows_installs_and_changes_nothing(room):
    done = room.run("provision", "--lock", f"{room.folder}/v.lock", "--dry-run")
    assert done.return_value == OK, done.output
    assert "gpu[1-2]  debian-12-x86_64, 8 GPUs, driver 580.159.04 (open)" in done.output
    assert "nvidia-fabricmanager 580.159.04-1" in done.output
    assert "+++" in done.output
    assert re.search(r"dry run: \d+ packages on 2 hosts\. Nothing was changed\.\n$", done.output)
    assert room.state("gpu1", "installed") is None
    assert not room.runs.exists()


def test_without_a_terminal_and_without_yes_nothing_is_begun(room):
    with pytest.raises(Exception, match="--yes"):
        room.run("provision", "--lock", f"{room.folder}/v.lock")
    assert room.log("gpu1") == []


# lock


def test_a_lock_has_the_versions_that_a_bare_host_then_gets(room):
    room.folder.joinpath("v.lock").unlink()
    done = room.run("lock", "-o", f"{room.folder}/v.lock")
    assert done.return_value == OK, done.output
    assert "debian-12-x86_64  driver 580.159.04" in done.output
    found = locks.read(room.folder / "v.lock")["debian-12-x86_64"]
    assert (found.driver, found.packages["nvidia-fabricmanager"]) == (DRIVER, f"{DRIVER}-1")
    again = room.run("lock", "-o", f"{room.folder}/v.lock", "--check")
    assert (again.return_value, "The lock file is up to date." in again.output) == (OK, True)
    assert states(room()) == WELL


def test_a_check_reports_a_driver_other_than_the_locked_one(room):
    done = room.run("lock", "-o", f"{room.folder}/v.lock", "--driver", "580.95.05")
    assert done.return_value == OK, done.output
    before = (room.folder / "v.lock").read_text()
    checked = room.run("lock", "-o", f"{room.folder}/v.lock", "--check")
    assert checked.return_value == END_STATE_MISSED
    assert "580.95.05-1 → 580.159.04-1" in checked.output
    assert (room.folder / "v.lock").read_text() == before


def test_an_unreachable_host_is_named_and_the_others_are_locked(room):
    room.gone.add("gpu2")
    done = room.run("lock")
    assert done.return_value == INCOMPLETE
    assert "gpu2: refused: nothing listens on port 22" in done.stderr
    assert "debian-12-x86_64:" in done.stdout


# upgrade


@pytest.fixture
def old(room):
    """Hosts that work with the older driver, as a provision leaves them, and a lock with the newer one."""
    for host, name in itertools.product(room.hosts, ("installed", "booted")):
        (room.place(host) / f"{name}.json").write_text(json.dumps(provisioning.locked(DRIVER).packages))
    locks.write(room.folder / "v.lock", room.lock(NEWER))
    return room


SLOW = records.whole(**{"memory local node0": 340.0})


@pytest.mark.usefixtures("over_ssh")
def test_an_upgrade_measures_each_host_before_and_after(old):
    told = old("--upgrade", "--drain", "slurm")
    well = {**dict.fromkeys(("preflight", "drain", "before", "packages", "reboot", "audit", "after", "resume"), "done")}
    assert states(told) == states(told, "gpu2") == {**well, "back": "nothing to do"}
    assert old.log("gpu1") == ["drain", f"packages {NEWER}", "reboot", "resume"]
    assert locks.upstream(old.state("gpu2", "booted")["nvidia-driver-cuda"]) == NEWER
    assert record(old, told, "held")["gpu1"]["driver"] == DRIVER
    valid("verify", json.dumps(record(old, told, "before-verify")))
    valid("verify", json.dumps(record(old, told, "after-verify")))
    same = states(old("--upgrade"))
    assert set(same.values()) == {"done", "nothing to do"}
    assert same["packages"] == "nothing to do"


def test_a_slower_upgrade_is_rolled_back_and_ends_the_run(old):
    old.figures["gpu1"] = [*[records.whole()] * MIN_RUNS, *[SLOW] * 2 * MIN_RUNS, *[records.whole()] * MIN_RUNS]
    told = old("--upgrade", "--drain", "slurm", code=TOO_SLOW)
    assert states(told)["after"] == "failed"
    assert "memory local node0" in message(told, "after")
    assert states(told)["back"] == "done"
    assert message(told, "back") == f"driver {DRIVER} restored; as fast as before"
    assert old.log("gpu1") == ["drain", f"packages {NEWER}", "reboot", f"packages {DRIVER}", "reboot", "resume"]
    assert old.state("gpu1", "installed") == dict(provisioning.locked(DRIVER).packages)
    assert old.log("gpu2") == []
    assert message(told, "drain", "gpu2") == "not started: the upgrade failed on gpu1"


@pytest.mark.full
def test_a_driver_that_does_not_come_up_is_undone(old):
    old.mark("gpu1", "no-boot")
    told = old("--upgrade", code=END_STATE_MISSED)
    assert "driver 580.159.04 is loaded, 580.178.04 is installed" in message(told, "reboot")
    assert states(told)["back"] == "done"
    assert old.state("gpu1", "installed") == dict(provisioning.locked(DRIVER).packages)


def test_packages_refused_before_any_change_need_no_way_back(old):
    old.mark("gpu1", "no-repository")
    told = old("--upgrade", "--drain", "slurm", code=END_STATE_MISSED)
    assert states(told)["packages"] == "failed"
    assert message(told, "back") == "no packages were changed"
    assert next_command(told).endswith("-l gpu1 --upgrade")
    assert old.log("gpu1") == ["drain", "resume"]


@pytest.mark.full
def test_packages_that_were_exchanged_in_part_are_undone(old):
    old.mark("gpu1", "no-setup")
    told = old("--upgrade", code=END_STATE_MISSED)
    assert states(told)["packages"] == "failed"
    assert states(told)["back"] == "failed"
    assert old.state("gpu1", "installed") == dict(provisioning.locked(DRIVER).packages)


@pytest.mark.full
def test_a_provision_completes_an_interrupted_upgrade(old, monkeypatch):
    with interrupted_at(old, "set up", monkeypatch):
        told = old("--upgrade", "--canary", "0", code=END_STATE_MISSED)
    assert next_command(told, "gpu2").endswith("-l gpu2")
    assert states(told, "gpu2")["back"] == "not reached"
    assert old.state("gpu2", "installed") == dict(provisioning.locked(NEWER).packages)
    again = old("--upgrade", "-l", "gpu2", code=END_STATE_MISSED)
    assert "driver 580.178.04 is installed but 580.159.04 is running" in message(again, "preflight", "gpu2")
    assert states(old("-l", "gpu2"), "gpu2")["reboot"] == "done"


def test_a_host_that_cannot_be_measured_is_not_upgraded(old):
    old.figures["gpu1"] = [[]]
    told = old("--upgrade", code=INCOMPLETE)
    assert "nothing could be measured, so nothing was upgraded" in message(told, "before")
    assert old.log("gpu1") == []


def test_a_bare_host_is_no_case_for_an_upgrade(room):
    told = room("--upgrade", code=END_STATE_MISSED)
    assert "provision this host without --upgrade" in message(told, "preflight")
    assert room.log("gpu1") == []

"""From a bare machine to a proven one, upgraded, and back from a bad upgrade: real apt, real boots, packages of tests/support/packages.

One story, told once; each stage is a fixture that builds on the one before. It is broken off where that hurts: by Ctrl-C while
packages are set up, by a kill while the machine reboots, by Ctrl-C while it is tuned. (The other stages: tests/integration.)
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from nodetune.foundation.exit_codes import END_STATE_MISSED, TOO_SLOW, USAGE
from nodetune.provision import STAGES, upgrade
from nodetune.provision import lock as locks
from nodetune.provision.package_data import moves_with_driver
from tests.machines import inventory, place, scheduler, witness
from tests.support.documents import valid
from tests.support.packages import bare as packages
from tests.support.packages import build, kernel, payload
from tests.support.packages.data import DRIVERS
from tests.support.packages.serve import Server

pytestmark = [
    pytest.mark.story,
    pytest.mark.skipif(payload.compiler_missing(), reason="no gcc or no make here"),
    pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg here: apt-get install gnupg"),
]

ROOT = Path(__file__).parents[2]
OLD, NEW, BAD = DRIVERS
SYSTEM = "debian-12-x86_64"
KIN = ("driver", "fabric-manager", "persistenced")
PARTS = (*KIN, "dcgm", "container-toolkit", "rdma", "tools", "time", "nccl")
FABRIC_MANAGER = "nvidia-fabricmanager"

BY_HAND = {
    "gpu-bar-too-small": "pretended GPUs have no memory windows",
    "too-few-cores-per-gpu": "eight CPUs for eight GPUs",
    "gpu-driver-vulnerable": "the driver of the first lock is an old one",
    "toolkit-vulnerable": "so is the toolkit",
    "nvidia-uvm-files-missing": "pretended GPUs have no such files",
    "host-memory-small-for-gpus": "1 GiB for eight GPUs",
}
"""What a person has to see to on this machine, and why nodetune cannot."""

BUSY_HOST = "clocksource-slow"
"""QEMU without KVM: where the host is busy, the kernel gives its clock up. Found on some runs only."""


class Controller:
    """nodetune as a user starts it, with a site file for each state of the repository."""

    def __init__(self, folder, machine, repositories, server):
        self.folder, self.machine, self.server = folder, machine, server
        self.inventory = inventory.write(folder / "inventory.yml", [machine])
        self.environment = {**os.environ, "NODETUNE_RUNS": str(folder / "runs")}
        shutil.copy(repositories / "key.asc", folder / "key.asc")

    def site(self, state, parts=PARTS, **more):
        """A site file with the repository in one of its states."""
        where = {"uris": f"{self.server.machines_url}/apt/{state}", "suites": "/", "key": "key.asc"}
        wanted = {
            "repositories": [{"name": "cuda", "systems": ["debian-12"], "apt": where}],
            "parts": list(parts),
            "driver": {"branch": OLD.partition(".")[0]},
            "guard": "observe",
            **more,
        }
        path = self.folder / f"{'-'.join([state, str(len(parts)), *more])}.yml"
        path.write_text(yaml.safe_dump({"provision": wanted}))
        return path

    def lock(self, name, driver):
        """The first lock with another driver, as an editor makes it."""
        path = self.folder / name
        path.write_text((self.folder / "first.lock").read_text().replace(OLD, driver))
        return path

    def start(self, command, *words):
        made = [sys.executable, "-m", "tests.machines.short", command, "-i", str(self.inventory), *map(str, words)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(made, **pipes, text=True, cwd=ROOT, env=self.environment, start_new_session=True)

    def __call__(self, command, *words, code=0):
        """Run a command; what it says."""
        return self.ended(self.start(command, *words), code)

    def ended(self, process, code):
        try:
            said, complained = process.communicate(timeout=3000)
        finally:
            self.kill(process)
        assert process.returncode == code, f"{process.returncode}\n{said[-6000:]}\n{complained[-3000:]}"
        assert "Traceback" not in complained
        return SimpleNamespace(said=said, complained=complained)

    def provision(self, site, lock, *words, code=0):
        """A provision; its document."""
        return valid("provision", self("provision", *self.words(site, lock), *words, code=code).said)

    def words(self, site, lock):
        return "--site", site, "--lock", lock, "--yes", "--format", "json", "--timeout", 240

    @contextlib.contextmanager
    def broken_off(self, site, lock, *words):
        """A provision that is under way: its process, and the run that it keeps its record in."""
        runs = self.folder / "runs"
        known = set(runs.glob("*"))
        process = self.start("provision", *self.words(site, lock), *words)
        try:
            yield SimpleNamespace(process=process, run=lambda: next(iter(set(runs.glob("*")) - known), None))
        finally:
            self.kill(process)

    def kill(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def record(self, run, name="provision"):
        return json.loads((self.folder / "runs" / run / f"{name}.json").read_text())


def tasks(run):
    """What a run has told of so far: (task or stage, status)."""
    path = run and run / "events.jsonl"
    lines = path.read_text().splitlines() if path and path.exists() else []
    told = []
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # half a line
            told.append((json.loads(line)["task"], json.loads(line)["status"]))
    return told


def until(told, holds, process):
    """As place.until, as long as the process lives."""
    place.until(told, lambda: holds() or process.poll() is not None, 1500, every=0.3)
    assert process.poll() is None, process.communicate()


def interrupted(process, code=END_STATE_MISSED):
    """Ctrl-C as a terminal sends it, and the document that is told all the same."""
    os.killpg(process.pid, signal.SIGINT)
    said, complained = process.communicate(timeout=600)
    assert process.returncode == code, complained
    assert "Traceback" not in complained
    return valid("provision", said)


def states(told):
    return {each["stage"]: each["state"] for each in told["hosts"][0]["stages"]}


def message(told, stage):
    return next(each["message"] for each in told["hosts"][0]["stages"] if each["stage"] == stage)


def next_words(told):
    """The options that the record proposes next to those that every run here has."""
    return re.findall(r"--(?:from|only) \w+", told["hosts"][0]["next"])[-1].split()


def installed(machine):
    """Package → version, of all that is whole."""
    lines = machine.ssh("dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n'").stdout.splitlines()
    rows = [line.split() for line in lines]
    assert {row[0] for row in rows} <= {"installed", "config-files"}, [row for row in rows if row[0] != "installed"]
    return {name: version for state, name, version in rows if state == "installed"}


def of_driver(machine):
    """Package → upstream version of what moves with the driver."""
    found = installed(machine)
    return {name: locks.upstream(version) for name, version in found.items() if moves_with_driver(name)}


def runs_with(machine):
    """What says which driver it is, asked of each that runs."""
    ask = "cat /sys/module/nvidia/version; nvidia-smi --version | sed -n 's/^DRIVER version *: //p'; nv-fabricmanager --version"
    return set(re.findall(r"580\.\d+\.\d+", machine.ssh(ask).stdout))


def active(machine, *units):
    return machine.ssh(f"systemctl is-active {' '.join(units)}", check=False).stdout.split()


def snapshot(machine):
    return SimpleNamespace(files=witness.files(machine), running=witness.running(machine))


@pytest.fixture(scope="module")
def served():
    repositories = build.ready(kernel.of_image(), ("apt",))
    with Server(repositories) as server:
        yield SimpleNamespace(repositories=repositories, server=server)


@pytest.fixture(scope="module")
def machine(fleet, served):
    """A bare machine, whose own repository is that of the distribution."""
    made = fleet(1)[0]
    packages.make(made, served.repositories)
    packages.use(made, served.repositories, served.server, "distribution")
    made.ssh("echo kernel.threads-max = 100000 > /etc/sysctl.d/99-site.conf; sysctl -q --system")  # as with more memory
    yield made
    fleet.stop(made)


@pytest.fixture(scope="module")
def nodetune(machine, served, tmp_path_factory):
    return Controller(tmp_path_factory.mktemp("controller"), machine, served.repositories, served.server)


@pytest.fixture(scope="module")
def locked(nodetune, machine):
    """The lock of a bare machine, and what it was like before and after it was asked."""
    before, path = snapshot(machine), nodetune.folder / "first.lock"
    nodetune("lock", "--site", nodetune.site("first"), "-o", path)
    return SimpleNamespace(before=before, after=snapshot(machine), path=path, found=locks.read(path)[SYSTEM])


@pytest.fixture(scope="module")
def refused(nodetune, machine, locked):
    """Versions that do not belong together: in a lock, and in a repository where Fabric Manager lags behind."""
    before = installed(machine)
    differing = nodetune.folder / "differing.lock"
    text = locked.path.read_text()
    differing.write_text(text.replace(f'{FABRIC_MANAGER}: "{OLD}', f'{FABRIC_MANAGER}: "{NEW}'))
    site, lagging = nodetune.site("first"), nodetune.site("lagging")
    return SimpleNamespace(
        lock=nodetune("provision", *nodetune.words(site, differing), code=USAGE),
        asked=nodetune("lock", "--site", lagging, "-o", nodetune.folder / "lagging.lock", code=END_STATE_MISSED),
        provisioned=nodetune.provision(
            lagging, nodetune.lock("newer.lock", NEW), "--only", "packages", code=END_STATE_MISSED
        ),
        before=before,
        after=installed(machine),
    )


@pytest.fixture(scope="module")
def cut_in_packages(nodetune, machine, locked, refused):
    """Ctrl-C while apt sets the driver up."""
    with nodetune.broken_off(nodetune.site("first"), locked.path) as going:
        until("dpkg unpacks", lambda: machine.ssh("pgrep -f 'dpkg.*--[u]npack'", check=False).stdout, going.process)
        return interrupted(going.process)


@pytest.fixture(scope="module")
def killed_in_reboot(nodetune, machine, locked, cut_in_packages):
    """The controller loses its power while the machine reboots: the record as it lies there."""
    site, words = nodetune.site("first"), next_words(cut_in_packages)
    machine.hang_up()
    before = machine.boot_id()
    with nodetune.broken_off(site, locked.path, *words) as going:
        until("the packages are there", lambda: ("packages", "done") in tasks(going.run()), going.process)
        until("it reboots", lambda: not machine._greets(), going.process)
        run = going.run()
    machine.wait_for_reboot(before)
    return SimpleNamespace(run=run.name, told=nodetune.record(run.name), shown=nodetune_shows(nodetune, run.name))


def nodetune_shows(nodetune, run):
    made = [sys.executable, "-m", "nodetune", "runs", "show", run]
    return subprocess.run(made, capture_output=True, text=True, env=nodetune.environment, timeout=120)


@pytest.fixture(scope="module")
def cut_in_tune(nodetune, locked, killed_in_reboot):
    """Ctrl-C while settings are changed."""
    with nodetune.broken_off(nodetune.site("first"), locked.path, "--from", "reboot") as going:
        until("it is tuned", lambda: "Change" in dict(tasks(going.run())), going.process)
        return interrupted(going.process)


@pytest.fixture(scope="module")
def provisioned(nodetune, machine, locked, cut_in_tune):
    told = nodetune.provision(nodetune.site("first"), locked.path, *next_words(cut_in_tune))
    return SimpleNamespace(told=told, after=snapshot(machine))


@pytest.fixture(scope="module")
def again(nodetune, machine, locked, provisioned):
    told = nodetune.provision(nodetune.site("first"), locked.path)
    return SimpleNamespace(told=told, after=snapshot(machine))


@pytest.fixture(scope="module")
def in_slurm(machine, again):
    """From now on Slurm may start jobs there."""
    scheduler.start(machine)


@pytest.fixture(scope="module")
def left_drained(nodetune, machine, in_slurm):
    """Drained for packages that cannot be had."""
    words = ("--only", "packages", "--drain", "slurm")
    told = nodetune.provision(nodetune.site("lagging"), nodetune.folder / "newer.lock", *words, code=END_STATE_MISSED)
    return SimpleNamespace(told=told, node=scheduler.state(machine))


@pytest.fixture(scope="module")
def joined(nodetune, machine, locked, left_drained):
    told = nodetune.provision(nodetune.site("first", join="slurm"), locked.path, "--only", "join")
    scheduler.reaches(machine, "idle")
    return told


@pytest.fixture(scope="module")
def upgraded(nodetune, machine, joined):
    path = nodetune.folder / "second.lock"
    site = nodetune.site("second", KIN)
    nodetune("lock", "--site", site, "-o", path)
    told = nodetune.provision(site, path, "--upgrade", "--drain", "slurm")
    found = locks.read(path)[SYSTEM]
    scheduler.reaches(machine, "idle")
    return SimpleNamespace(told=told, found=found, driver=of_driver(machine), runs=runs_with(machine))


@pytest.fixture(scope="module")
def taken_back(nodetune, machine, upgraded):
    """An upgrade to a driver with which everything takes twice as long."""
    words = (nodetune.site("bad", KIN), nodetune.lock("bad.lock", BAD), "--upgrade", "--drain", "slurm")
    told = nodetune.provision(*words, code=TOO_SLOW)
    scheduler.reaches(machine, "idle")
    return SimpleNamespace(told=told, installed=installed(machine), runs=runs_with(machine))


# --- before anything is installed


def test_locking_a_bare_machine_changes_nothing_on_it(locked):
    assert witness.changed(locked.before.files, locked.after.files) == {}
    assert witness.changed(locked.before.running, locked.after.running) == {}


def test_a_lock_names_one_version_for_driver_and_fabric_manager(locked):
    assert locked.found.driver == OLD
    assert {FABRIC_MANAGER, "nvidia-driver-cuda", "libnvidia-nscq", "libcuda1"} <= set(locked.found.packages)
    assert locks.mismatched(locked.found) == {}
    assert locked.path.read_text() == locks.text({SYSTEM: locked.found})


def test_a_lock_with_another_fabric_manager_version_is_refused(refused):
    assert re.search(
        rf"differing\.lock line \d+: {FABRIC_MANAGER} is {NEW}-1 and the driver {OLD}", refused.lock.complained
    )


def test_nothing_is_locked_while_fabric_manager_lags_behind(nodetune, refused):
    assert f"{FABRIC_MANAGER} {OLD}-1" in refused.asked.complained
    assert not (nodetune.folder / "lagging.lock").exists()
    assert states(refused.provisioned)["packages"] == "failed"
    assert FABRIC_MANAGER in message(refused.provisioned, "packages")
    assert refused.before == refused.after


# --- broken off


def test_ctrl_c_in_packages_leaves_a_record_and_the_next_command(nodetune, cut_in_packages):
    told = cut_in_packages
    assert list(states(told)) == list(STAGES)
    assert list(states(told).values()) == ["done", "failed", *["not reached"] * 7]
    assert "Ctrl-C" in message(told, "packages")
    assert next_words(told) == ["--from", "packages"]
    assert nodetune.record(told["run"])["hosts"] == told["hosts"]
    assert nodetune.record(told["run"], "run")["ended"]


def test_a_controller_killed_in_a_reboot_has_recorded_everything(killed_in_reboot):
    valid("provision", json.dumps(killed_in_reboot.told))
    assert states(killed_in_reboot.told) == {"preflight": "done", "packages": "done"}
    assert killed_in_reboot.shown.returncode == 0, killed_in_reboot.shown.stderr
    assert "packages" in killed_in_reboot.shown.stdout


def test_ctrl_c_in_tuning_leaves_a_record_and_the_next_command(cut_in_tune):
    told = states(cut_in_tune)
    assert (told["reboot"], told["tune"], told["audit"]) == ("nothing to do", "failed", "not reached")
    assert next_words(cut_in_tune) == ["--from", "tune"]


# --- provisioned


def test_the_next_command_completes_what_was_broken_off(nodetune, provisioned):
    told = states(provisioned.told)
    assert {stage: told[stage] for stage in STAGES[3:]} == {
        **dict.fromkeys(("tune", "audit", "verify", "guard"), "done"),
        **dict.fromkeys(("baseline", "join"), "left out"),
    }
    assert nodetune.record(provisioned.told["run"], "run")["exit"] == 0
    valid("verify", json.dumps(nodetune.record(provisioned.told["run"], "verify")))


def test_every_locked_package_is_there_in_its_version(machine, locked, provisioned):
    found = installed(machine)
    assert {name: found.get(name) for name in locked.found.packages} == dict(locked.found.packages)


def test_driver_and_fabric_manager_run_in_one_version(machine, provisioned):
    assert runs_with(machine) == {OLD}
    assert active(machine, FABRIC_MANAGER, "nvidia-persistenced", "nvidia-dcgm", "chrony") == ["active"] * 4


def test_the_persistence_daemon_keeps_the_driver_loaded(machine, provisioned):
    line = machine.ssh("tr '\\0' ' ' < /proc/$(pgrep -x nvidia-persiste)/cmdline").stdout
    assert " --persistence-mode " in line


def test_nouveau_is_kept_out_at_the_boot_as_well(machine, provisioned):
    assert "blacklist nouveau" in machine.ssh("modprobe --showconfig").stdout
    assert "nodetune-nouveau.conf" in machine.ssh("lsinitramfs /boot/initrd.img-$(uname -r)").stdout


def test_pins_hold_the_driver_where_a_newer_one_can_be_had(machine, served, provisioned):
    newer = "/etc/apt/sources.list.d/newer.list"
    machine.write(newer, f"deb [signed-by={packages.KEY}] {served.server.machines_url}/apt/second /\n")
    try:
        told = machine.ssh("apt-get -q update && apt-get -s dist-upgrade && apt-cache policy nvidia-driver-cuda").stdout
    finally:
        machine.ssh(f"rm {newer}; apt-get -q update")
    assert NEW in told
    assert not re.search(r"^Inst .*(nvidia|libcuda)", told, re.MULTILINE)


def test_no_finding_is_left_that_nodetune_could_fix(nodetune, provisioned):
    told = nodetune(
        "audit", "--site", nodetune.site("first"), "--format", "json", "--fail-on", "never", "--timeout", 240
    )
    findings = valid("audit", told.said)["hosts"][0]["findings"]
    left = {each["check"]: bool(each["fix"]) for each in findings if each["status"] == "fail"}
    assert not any(left.values()), left
    assert set(left) - {BUSY_HOST} == set(BY_HAND), sorted(left)


def test_a_second_provision_finds_nothing_to_do(provisioned, again):
    told = states(again.told)
    assert {told[stage] for stage in ("packages", "reboot", "tune", "guard")} == {"nothing to do"}
    assert witness.changed(provisioned.after.files, again.after.files) == {}
    assert witness.changed(provisioned.after.running, again.after.running) == {}


# --- in Slurm


def test_a_node_without_packages_stays_drained_until_it_joins(left_drained, joined):
    assert states(left_drained.told)["packages"] == "failed"
    assert left_drained.node == "drained"
    assert states(joined)["join"] == "done"


# --- upgraded


def test_an_upgrade_moves_driver_and_fabric_manager_together(upgraded):
    told = states(upgraded.told)
    assert list(told) == list(upgrade.STAGES)
    assert (told["packages"], told["reboot"], told["after"], told["back"]) == ("done", "done", "done", "nothing to do")
    assert upgraded.found.driver == NEW
    assert set(upgraded.driver.values()) == {NEW}
    assert upgraded.runs == {NEW}


def test_a_driver_with_which_everything_is_slower_is_taken_back(nodetune, upgraded, taken_back):
    told = taken_back.told
    assert (states(told)["after"], states(told)["back"]) == ("failed", "done")
    assert "slower than before: gpu_" in message(told, "after")
    assert message(told, "back") == f"driver {NEW} restored; as fast as before"
    assert nodetune.record(told["run"], "held")[nodetune.machine.name]["driver"] == NEW


def test_after_a_downgrade_all_packages_have_their_old_versions(machine, upgraded, taken_back):
    locked = dict(upgraded.found.packages)
    assert {name: taken_back.installed.get(name) for name in locked} == locked
    assert taken_back.runs == {NEW}
    assert active(machine, FABRIC_MANAGER, "nvidia-persistenced") == ["active"] * 2


def test_an_upgrade_drains_and_resumes_also_after_a_downgrade(upgraded, taken_back):
    for told in (upgraded.told, taken_back.told):
        assert (states(told)["drain"], states(told)["resume"]) == ("done", "done")

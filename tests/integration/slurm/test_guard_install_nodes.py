"""The guard installed over real logins by real Ansible on a machine that can be thrown away, and called by a real Slurm.

The machine is a mount namespace with overlays over /etc, /opt and /var/lib: what an uninstall leaves is what lies in
their upper folders.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
sys.path[:0] = [str(HERE / "integration"), str(HERE / "integration" / "slurm")]

import lab  # noqa: E402
from farm import SSHD, Farm  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("slurm-install"),
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
    pytest.mark.skipif(SSHD is None, reason="no sshd: apt install openssh-server"),
]

APART = """
set -e
cd "$1"
for name in etc opt var/lib; do
    mkdir -p up/$name work/$name
    mount -t overlay overlay -o "lowerdir=/$name,upperdir=$1/up/$name,workdir=$1/work/$name" "/$name"
done
mkdir -p run/nodetune
mount -t tmpfs tmpfs /run/nodetune 2> /dev/null || { mkdir -p /run/nodetune && mount -t tmpfs tmpfs /run/nodetune; }
echo ready
exec sleep infinity
"""

STATE = "/etc/state-of-node"
SITE = f"""
add:
  - id: site-node-is-sick
    title: Somebody marked the node as sick
    file: {STATE}
    accept: {{equals: well}}
    severity: critical
    gate: true
"""


class Machine:
    """A machine to throw away: a host of the farm whose files under /etc, /opt and /var/lib are its own."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run(
            ["mount", "-t", "tmpfs", "tmpfs", folder], check=True
        )  # an overlay takes no overlay for its upper folder
        words = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", APART, "sh", str(folder)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._process.stdout.readline() == "ready\n"
        self.enter = ("nsenter", f"--mount=/proc/{self._process.pid}/ns/mnt")

    def run(self, *words, check=True):
        done = subprocess.run([*self.enter, *words], capture_output=True, text=True)
        assert not (check and done.returncode), (words, done.stdout, done.stderr)
        return done

    def read(self, path):
        return self.run("cat", path).stdout

    def write(self, path, text):
        subprocess.run([*self.enter, "tee", path], input=text, text=True, check=True, stdout=subprocess.DEVNULL)

    def changed(self):
        """All that differs from what was there before, but nodetune's own state."""
        upper = self.folder / "up"
        found = [path.relative_to(upper) for path in upper.rglob("*") if not path.is_dir() or not any(path.iterdir())]
        own = {Path(name) for name in ("etc", "opt", "var/lib")}
        return sorted(str(path) for path in found if path not in own and "var/lib/nodetune" not in str(path))

    def end(self):
        self._process.kill()
        self._process.communicate()
        subprocess.run(["umount", "-l", self.folder], check=True)


class Cluster(lab.Cluster):
    """A Slurm on that machine."""

    def __init__(self, folder, machine):
        super().__init__(folder)
        self.machine = machine

    def _start(self, command):
        return super()._start([*self.machine.enter, *command])


@pytest.fixture(scope="module")
def folder():
    """Open to the users that daemons run as; pytest's own are closed to them, and again by every pytest that starts."""
    made = Path(tempfile.mkdtemp(prefix="nodetune-install-"))
    made.chmod(0o755)
    for name in ("machine", "slurm", "farm"):
        (made / name).mkdir()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def machine(folder):
    made = Machine(folder / "machine")
    yield made
    made.end()


@pytest.fixture(scope="module")
def cluster(machine, folder):
    with Cluster(folder / "slurm", machine) as started:
        yield started


@pytest.fixture(scope="module")
def nodetune(machine, folder):
    """The command line against the machine by ssh: nodetune("install", …) → (exit code, what it said)."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    farm = Farm(folder / "farm")
    address = farm.address()
    farm.start({address: ()}, prefix=machine.enter)
    farm.know(address)
    inventory = farm.folder / "hosts.yml"
    python = farm.bin / "python3"
    inventory.write_text(
        f"all: {{hosts: {{n01: {{ansible_host: {address}, ansible_python_interpreter: {python}, "
        f"ansible_ssh_common_args: '-F {farm.config}'}}}}}}\n"
    )
    site = farm.folder / "site.yml"
    site.write_text(SITE)
    environment = {**os.environ, "NODETUNE_RUNS": str(farm.folder / "runs"), "COLUMNS": "200"}

    def call(*words, command="guard"):
        if words[0] in ("install", "diff"):
            words = (*words, "--site", str(site))
        given = [sys.executable, "-m", "nodetune", command, *words, "-i", str(inventory)]
        done = subprocess.run(given, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout + done.stderr

    call.names = lambda: {path.name for path in (farm.folder / "runs").glob("*")}
    yield call
    farm.stop()


def srun(cluster, *words):
    try:
        done = subprocess.run(["srun", *words], env=cluster.environment, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired as problem:
        raise AssertionError(f"{problem}: {problem.stderr}\n{cluster.told()}") from None
    return done.returncode, done.stdout


def heartbeat(machine):
    return machine.run("cat", "/run/nodetune/guard/heartbeat", check=False).stdout


def test_a_guard_is_installed_called_and_gone_again(machine, cluster, nodetune):
    before = cluster.conf.read_bytes()
    machine.write(STATE, "well\n")
    observes(machine, cluster, nodetune)
    is_gone(machine, cluster, nodetune, before)


@pytest.mark.full
def test_a_guard_from_nothing_to_enforcing_and_gone_again(machine, cluster, nodetune):
    """The story of the documentation, in its order; each step rests on the one before."""
    before, earlier = cluster.conf.read_bytes(), nodetune.names()
    looks_first(machine, nodetune)
    observes(machine, cluster, nodetune)
    installs_again_and_changes_nothing(machine, nodetune)
    enforces(machine, cluster, nodetune)
    leaves_scripts_that_slurm_calls(cluster, nodetune, before, min(nodetune.names() - earlier))
    is_gone(machine, cluster, nodetune, before)


def is_gone(machine, cluster, nodetune, before):
    machine.run("rm", "-f", STATE)
    code, said = nodetune("uninstall", "--yes", "--reconfigure")
    assert (code, said.count("left ")) == (0, 1), said
    assert machine.changed() == []
    assert cluster.conf.read_bytes() == before
    assert srun(cluster, "hostname")[0] == 0


def looks_first(machine, nodetune):
    machine.write(STATE, "well\n")
    code, said = nodetune("diff")
    assert (code, "no guard on n01" in said, "newly gates" in said) == (1, True, True), said
    code, said = nodetune("install", "--dry-run")
    assert (code, "Prolog=/opt/nodetune/guard/prolog" in said, "slurm.conf needs these lines on n01" in said) == (
        0,
        True,
        True,
    ), said
    assert machine.changed() == [STATE.lstrip("/")]


def observes(machine, cluster, nodetune):
    """A sick node runs its jobs; monitoring sees what would have been."""
    code, said = nodetune("install", "--yes", "--write-slurm-conf", "--reconfigure")
    assert (code, "calls the guard on n01" in said) == (0, True), said
    code, said = srun(cluster, "env")
    assert (code, "OMP_NUM_THREADS=" in said) == (0, True), said
    assert re.search(r"\d+ \d+ pass", heartbeat(machine)), heartbeat(machine)
    machine.write(STATE, "sick\n")
    machine.run("rm", "-rf", "/run/nodetune/guard/pass")
    assert srun(cluster, "hostname")[0] == 0
    assert re.search(r"^\d+ \d+ fail: [a-z-]+: .+\n$", heartbeat(machine)), heartbeat(machine)
    assert cluster.state("n01").startswith("IDLE")


def installs_again_and_changes_nothing(machine, nodetune):
    installed = machine.read("/etc/nodetune/guard.json")
    code, said = nodetune("install", "--yes", "--write-slurm-conf")
    assert (code, "0 changes" in said, "fails now n01" in said) == (0, True, True), said
    assert machine.read("/etc/nodetune/guard.json") == installed


def enforces(machine, cluster, nodetune):
    code, said = nodetune("install", "--yes", "--mode", "enforce")
    assert (code, '"observe" → "enforce"' in said, "calls the guard" in said) == (0, True, True), said
    assert srun(cluster, "hostname")[0] != 0
    cluster.wait_until(lambda: "DRAIN" in cluster.state("n01"), "n01 is drained")
    machine.write(STATE, "well\n")
    cluster.run("scontrol", "update", "NodeName=n01", "State=RESUME")
    cluster.wait_until(lambda: cluster.state("n01") == "IDLE", "n01 is idle")
    assert srun(cluster, "hostname")[0] == 0


def leaves_scripts_that_slurm_calls(cluster, nodetune, before, first):
    """Slurm would drain a node whose prolog is gone: not by an uninstall before its time, nor by a forced rollback."""
    code, said = nodetune(first, "--yes", "--force", command="rollback")
    assert (code, "Slurm still calls it" in said) == (4, True), said
    assert srun(cluster, "hostname")[0] == 0
    code, said = nodetune("uninstall", "--yes")
    assert (code, "Slurm still calls the guard on n01" in said) == (4, True), said
    assert cluster.conf.read_bytes() == before
    assert srun(cluster, "hostname")[0] == 0

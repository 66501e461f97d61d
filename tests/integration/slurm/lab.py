"""A real Slurm (Debian's packages) on this machine for tests: munged, slurmctld and some slurmd, all in one folder.

Nothing under /etc is touched. Needs root (slurmd) and: slurmctld slurmd slurm-client munge.

With `apart` each slurmd lives in namespaces of its own: its processes see no others, and the folders run, lib, opt and
policy of `of_node(NAME)` are their /run, /var/lib/nodetune, /opt and /etc/nodetune.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = ("munged", "slurmctld", "slurmd", "scontrol", "srun")
STARTS_WITHIN = 60

CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
# a requeued job waits cred_expire + 1 s; 5 is the least that Slurm takes
AuthInfo=socket={lab}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={lab}/state
SlurmdSpoolDir={lab}/spool/%n
SlurmctldPidFile={lab}/run/slurmctld.pid
SlurmdPidFile={lab}/run/slurmd-%n.pid
SlurmctldLogFile={lab}/log/slurmctld.log
SlurmdLogFile={lab}/log/slurmd-%n.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=1
# Slurm's own default: a node that was silent for so long, as when this machine's clock is set or it stalls, is DOWN, and
# is not asked again for minutes
SlurmdTimeout=300
MailProg=/bin/true
SlurmdParameters=config_overrides
{extra}
{gres}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

APART = """\
mount --bind "$1/run" /run && mount --bind "$1/lib" /var/lib/nodetune && mount --bind "$1/opt" /opt &&
    mount --bind "$1/policy" /run/policy && mount -t overlay overlay -o "lowerdir=$1/etc:/etc" /etc || exit
shift
"$@" &
trap 'kill $!; wait' TERM
wait
"""
"""Its shell is the first process there: it takes the orphans, and all end with it."""


def missing() -> str:
    """Why no cluster can be started here; empty when one can."""
    if os.geteuid() != 0:
        return "slurmd runs as root"
    absent = [tool for tool in TOOLS if not _tool(tool)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def _tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _turn(how):
    turn = (Path(tempfile.gettempdir()) / "nodetune-slurm-lab.lock").open("w")
    fcntl.flock(turn, how)
    return turn


@contextlib.contextmanager
def no_slurm():
    """Waits until no cluster of these tests runs, and keeps others waiting: for what looks whether a slurmd is there."""
    with _turn(fcntl.LOCK_EX):
        yield


class Cluster:
    """`with Cluster(folder, nodes=2) as cluster:` nodes are n01, n02 …, all on this machine."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 1,
        extra: str = "",
        gpus: int = 0,
        task: str = "none",
        apart=False,
        proctrack="linuxproc",
    ):
        self.folder, self.nodes, self.extra = folder, [f"n{number + 1:02d}" for number in range(nodes)], extra
        self.gpus, self.task, self.apart, self.proctrack = gpus, task, apart, proctrack
        self.port, self._ports = _held_ports(nodes + 1)
        self.conf = folder / "etc" / "slurm.conf"
        self._started: list[subprocess.Popen] = []
        self._shells: dict[str, int] = {}

    @property
    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}

    def __enter__(self):
        # The code under test looks for *the* slurmd, unless it lives apart
        self._turn = _turn(fcntl.LOCK_SH if self.apart else fcntl.LOCK_EX)
        try:
            self._write()
            self._start(["runuser", "-u", "munge", "--", _tool("munged"), "--foreground", *self._munge_options()])
            self.start_controller()
            self._start_nodes()
            self.wait_until(
                lambda: all(self.state(node).startswith("IDLE") for node in self.nodes), "the nodes are idle"
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_problem):
        for process in reversed(self._started):
            _end(process)
        self._turn.close()
        self._ports.close()

    def _start_nodes(self):
        for node in self.nodes:
            self._shells[node] = self._start(
                [*self._apart(node), _tool("slurmd"), "-D", "-N", node, "-f", str(self.conf)]
            ).pid

    def restart(self):
        """Start slurmctld and every slurmd again: for a changed configuration. Return when the nodes have registered."""
        for process in reversed(self._started[1:]):
            _end(process)
        del self._started[1:]
        self.controller = self._start([_tool("slurmctld"), "-D", "-f", str(self.conf)])
        self._start_nodes()
        self.wait_until(
            lambda: all(self.fields(node).get("SlurmdStartTime", "None") != "None" for node in self.nodes),
            "the nodes have registered",
        )

    def start_controller(self):
        self.controller = self._start([_tool("slurmctld"), "-D", "-c", "-f", str(self.conf)])

    def stop_controller(self):
        self._started.remove(self.controller)
        _end(self.controller)

    def of_node(self, node):
        """Where the files of a node are that it has for itself."""
        return self.folder / "nodes" / node

    def _apart(self, node):
        if not self.apart:
            return []
        Path("/var/lib/nodetune").mkdir(exist_ok=True)
        place = self.of_node(node)
        for name in ("run/policy", "lib", "opt", "policy", "etc"):
            (place / name).mkdir(parents=True, exist_ok=True)
        if not (place / "etc" / "nodetune").is_symlink():
            (place / "etc" / "nodetune").symlink_to("/run/policy")  # what lies in an overlay must not change
        space = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        return [*space, "/bin/sh", "-c", APART, "sh", str(place)]

    def inside(self, node):
        """A command's first words that run the rest in a node's namespaces."""
        shell = self._shells[node]
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return ["nsenter", "--target", children[0], "--mount", "--pid", "--"]

    def _start(self, command):
        log = (self.folder / "log" / "output").open("ab")
        with log:
            started = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(started)
        return started

    def _munge_options(self):
        munge = self.folder / "munge"
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [f"--{option}={munge / name}" for option, name in files.items()]

    def _write(self):
        for name in ("etc", "run", "log", "spool", "state", "munge"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for path in (self.folder / "munge", key):
            shutil.chown(path, "munge", "munge")
        for name in ("state", "log"):
            shutil.chown(self.folder / name, "slurm", "slurm")
        host = socket.gethostname().partition(".")[0]
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.port + 1 + number} CPUs=4{gres} State=UNKNOWN"
            for number, node in enumerate(self.nodes)
        ]
        self.conf.write_text(
            CONFIG.format(
                host=host,
                port=self.port,
                lab=self.folder,
                task=self.task,
                proctrack=self.proctrack,
                extra=self.extra,
                gres="GresTypes=gpu" if self.gpus else "",
                nodes="\n".join(lines),
            )
        )
        (self.folder / "etc" / "cgroup.conf").write_text("CgroupAutomount=no\n")
        if self.gpus:
            self._write_gres()

    def _write_gres(self):
        """GPUs that are device files and no more: what is behind them is another substitute's."""
        devices = self.folder / "dev"
        devices.mkdir(exist_ok=True)
        for number in range(self.gpus):
            os.mknod(devices / f"nvidia{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (self.folder / "etc" / "gres.conf").write_text(
            f"AutoDetect=off\nName=gpu File={devices}/nvidia[0-{self.gpus - 1}]\n"
        )

    def run(self, *command, check=True):
        """A Slurm command on this cluster; its standard output."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.stderr or done.stdout}")
        return done.stdout

    def state(self, node):
        return self.fields(node).get("State", "")

    def fields(self, node):
        line = self.run("scontrol", "-o", "show", "node", node, check=False)
        head, _, reason = line.partition(" Reason=")
        return {**dict(word.split("=", 1) for word in head.split() if "=" in word), "Reason": reason.strip()}

    def wait_until(self, true, what):
        end = time.monotonic() + STARTS_WITHIN
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"not within {STARTS_WITHIN} s: {what}\n{self.told()}")
            time.sleep(0.1)

    def told(self):
        """The nodes, the jobs and the end of every log: for the message of what failed."""
        asked = [self.run("scontrol", "show", what, check=False) for what in ("nodes", "jobs")]
        logs = [f"{path.name}:\n{path.read_text(errors='replace')[-4000:]}" for path in (self.folder / "log").iterdir()]
        return "\n".join([*asked, *logs])


def _end(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(10)
            break
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _held_ports(count):
    """The first of `count` ports in a row that nothing listens on, and a lock that keeps other labs off them while it is open."""
    for first in range(20000, 32700, 100):  # below those that the kernel hands out
        held = (Path(tempfile.gettempdir()) / f"nodetune-slurm-ports-{first}.lock").open("w")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for port in range(first, first + count):
                with socket.socket() as probe:
                    # as slurmd does: on every address, also those that sshds of other tests have
                    probe.bind(("", port))
        except OSError:
            held.close()
            continue
        return first, held
    raise AssertionError("no free ports")


class Running:
    """Starts nodetune next to a cluster; `end` ends what still runs."""

    def __init__(self, cluster, folder):
        self._cluster, self._folder = cluster, folder
        self._processes = []

    def start(self, *words, within=(), **more):
        environment = {**self._cluster.environment, "COLUMNS": "160", "HOME": str(self._folder), **more}
        self._processes.append(
            subprocess.Popen(
                [*within, sys.executable, "-m", "nodetune", *map(str, words)],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return self._processes[-1]

    def end(self):
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def ended(process, seconds):
    """Exit code, standard output and standard error."""
    out, errors = process.communicate(timeout=seconds)
    return process.returncode, out, errors

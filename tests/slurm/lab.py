"""A real Slurm (Debian's packages) on this machine for tests: munged, slurmctld and some slurmd, all in one folder.

Nothing under /etc is touched. Needs root (slurmd) and: slurmctld slurmd slurm-client munge.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
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
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=1
SlurmdTimeout=30
MailProg=/bin/true
SlurmdParameters=config_overrides
{extra}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no cluster can be started here; empty when one can."""
    if os.geteuid() != 0:
        return "slurmd runs as root"
    absent = [tool for tool in TOOLS if not _tool(tool)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def _tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class Cluster:
    """`with Cluster(folder, nodes=2) as cluster:` nodes are n01, n02 …, all on this machine."""

    def __init__(self, folder: Path, nodes: int = 1, extra: str = "", port: int = 0):
        self.folder, self.nodes, self.extra = folder, [f"n{number + 1:02d}" for number in range(nodes)], extra
        self.port = port or _free_ports(nodes + 1)
        self.conf = folder / "etc" / "slurm.conf"
        self._started: list[subprocess.Popen] = []

    @property
    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.conf), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}

    def __enter__(self):
        self._turn = (Path(tempfile.gettempdir()) / "nodetune-slurm-lab.lock").open("w")
        fcntl.flock(self._turn, fcntl.LOCK_EX)  # one cluster at a time: the code under test looks for *the* slurmd
        try:
            self._write()
            self._start(["runuser", "-u", "munge", "--", _tool("munged"), "--foreground", *self._munge_options()])
            self._start([_tool("slurmctld"), "-D", "-c", "-f", str(self.conf)])
            for node in self.nodes:
                self._start([_tool("slurmd"), "-D", "-N", node, "-f", str(self.conf)])
            self.wait_until(
                lambda: all(self.state(node).startswith("IDLE") for node in self.nodes), "the nodes are idle"
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_problem):
        for process in reversed(self._started):
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(10)
                    break
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
        self._turn.close()

    def _start(self, command):
        log = (self.folder / "log" / "output").open("ab")
        with log:
            self._started.append(
                subprocess.Popen(
                    command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _munge_options(self):
        munge = self.folder / "munge"
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        return [f"--{option}={munge / name}" for option, name in files.items()]

    def _write(self):
        for name in ("etc", "run", "log", "spool", "state", "munge"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for path in [self.folder, *self.folder.parents]:  # munged and slurmctld run as users of their own
            path.chmod(path.stat().st_mode | 0o011)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for path in (self.folder / "munge", key):
            shutil.chown(path, "munge", "munge")
        for name in ("state", "log"):
            shutil.chown(self.folder / name, "slurm", "slurm")
        host = socket.gethostname().partition(".")[0]
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.port + 1 + number} CPUs=4 State=UNKNOWN"
            for number, node in enumerate(self.nodes)
        ]
        self.conf.write_text(
            CONFIG.format(host=host, port=self.port, lab=self.folder, extra=self.extra, nodes="\n".join(lines))
        )
        (self.folder / "etc" / "cgroup.conf").write_text("CgroupAutomount=no\n")

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
                said = (self.folder / "log" / "output").read_text(errors="replace")[-2000:]
                raise AssertionError(f"not within {STARTS_WITHIN} s: {what}\n{said}")
            time.sleep(0.1)


def _free_ports(count):
    """The first of `count` ports in a row that nothing listens on."""
    for first in range(20000 + os.getpid() % 5000 * 4, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no free ports")

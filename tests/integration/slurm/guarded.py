"""A cluster whose nodes are guarded: the real entry, program and policy on each, a substitute NVML behind its GPUs."""

import json
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import jinja2
import lab

from nodetune.config import profile
from nodetune.foundation import paths
from nodetune.guard.deploy import policy
from nodetune.probe import guard as memory
from tests.support import nvml_substitute
from tests.unit.guard import install

PYTHON = "/usr/bin/python3"
HOME = "/opt/nodetune/guard"
RUN = "run/nodetune/guard"
CONFIG = """\
PrologFlags=Alloc
SchedulerParameters=nohold_on_prolog_fail,sched_interval=1,sched_min_interval=100000,bf_interval=1
Prolog={home}/prolog
Epilog={home}/epilog
TaskProlog={home}/taskprolog
HealthCheckProgram={home}/healthcheck
HealthCheckNodeState=IDLE
HealthCheckInterval={interval}
"""
SCRIPTS = {
    "prolog": "guard-entry.sh.j2",
    "epilog": "guard-entry.sh.j2",
    "healthcheck": "guard-entry.sh.j2",
    "taskprolog": "guard-taskprolog.sh.j2",
}


def missing():
    """Why no guarded cluster can be started here; empty when one can."""
    return lab.missing() or nvml_substitute.compiler_missing()


class Guarded(lab.Cluster):
    """Nodes of four CPUs and two GPUs. `settings` are those of the policy; health checks come every `interval` s (0: never)."""

    def __init__(self, parts, nodes=3, interval=0, proctrack="linuxproc", **settings):
        folder = Path(tempfile.mkdtemp(prefix="nodetune-slurm-"))  # short: sockets are below it
        folder.chmod(0o755)
        super().__init__(
            folder,
            nodes,
            CONFIG.format(home=HOME, interval=interval),
            gpus=2,
            task="affinity",
            apart=True,
            proctrack=proctrack,
        )
        self.parts, self.shared = parts, folder / "shared"
        self.settings = {
            "mode": "enforce",
            "reuse_seconds": 0,
            "off": ["/etc/nodetune/guard.off"],
            "seconds": {"total": 40, "step": 20},  # this machine may be busy; what its time is over for is not found
            **settings,
        }
        for node in self.nodes:
            self._equip(node)

    def __exit__(self, *problem):
        super().__exit__(*problem)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _equip(self, node):
        place = self.of_node(node)
        (place / "policy").mkdir(parents=True)
        library = place / "run" / "nvidia" / "driver" / "usr" / "lib64"  # where the reader looks besides
        library.mkdir(parents=True)
        (library / "libnvidia-ml.so.1").symlink_to(self.parts / "nvml" / "libnvidia-ml.so.1")
        (place / "run" / "nodetune-nvml").mkdir()
        (place / "lib" / "guard").mkdir(parents=True)
        self.remember(node, gpus=0)
        home = place / HOME[1:]
        home.mkdir(parents=True)
        (home / "program").symlink_to(self.parts / "program")
        self.write_policy(node)
        self.write_scripts(node)
        self.control(node)

    def write_policy(self, node, change=lambda data: None, **settings):
        data = policy.make(profile.resolve(profile.named(["training"])), node, {**self.settings, **settings})
        change(data)
        (self.of_node(node) / "policy" / "guard.json").write_text(json.dumps(data))

    def remember(self, node, gpus):
        """Let its guard have seen so many GPUs."""
        made = {"machine": memory.machine(), "gpus": gpus, "adapters": 0}
        (self.of_node(node) / "lib" / "guard" / "hardware.json").write_text(json.dumps(made))

    def write_scripts(self, node, **changes):
        given = {
            "run": f"/{RUN}",
            "kept": "/var/lib/nodetune/guard",
            "off": self.settings["off"],
            "seconds": 60,
            "python": PYTHON,
            "program": f"{HOME}/program",
            "policy": "/etc/nodetune/guard.json",
            **changes,
        }
        for name, template in SCRIPTS.items():
            path = self.of_node(node) / HOME[1:] / name
            path.unlink(missing_ok=True)
            path.write_text(_rendered(template, given))
            path.chmod(0o755)

    def control(self, node, *lines):
        """How the node's NVML misbehaves: see tests/machines/nvml. It has two GPUs, as gres.conf says."""
        path = self.of_node(node) / "run" / "nodetune-nvml" / "control"
        path.write_text("".join(f"{line}\n" for line in (*lines, "count=2")))

    def left(self, node, name):
        """A file that the guard left on a node; empty where it is not there."""
        path = self.of_node(node) / RUN / name
        return path.read_text() if path.exists() else ""

    def inconclusive(self, node):
        """How many times the guard was inconclusive there."""
        return int((self.left(node, "blind") or "0").split()[0])

    def reason(self, node):
        """The reason without who gave it and when."""
        return self.fields(node)["Reason"].rpartition(" [")[0]

    def said(self, node):
        """What slurmd logged of prolog and epilog."""
        return (self.folder / "log" / f"slurmd-{node}.log").read_text(errors="replace")

    def call(self, *command, environment=None):
        """A command that may fail: (exit code, output and errors)."""
        given = self.environment if environment is None else environment
        done = subprocess.run(command, env=given, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def batch(self, *options, script="hostname -s; echo on $SLURMD_NODENAME"):
        """Submit a job: its number. It holds a GPU."""
        output = f"--output={self.folder}/out-%j"
        words = ["sbatch", "--parsable", "--gres=gpu:1", output, *options, f"--wrap={script}"]
        return self.run(*words).strip()

    def output(self, job):
        path = self.folder / f"out-{job}"
        return path.read_text() if path.exists() else ""

    def job(self, job):
        """What slurmctld knows of a job."""
        line = self.run("scontrol", "-o", "show", "job", job, check=False)
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def wait_for_job(self, job, state="COMPLETED"):
        self.wait_until(lambda: self.job(job).get("JobState") == state, f"job {job} is {state}")

    def wait_for_drain(self, node):
        self.wait_until(lambda: "DRAIN" in self.state(node), f"{node} is drained")

    def mend(self):
        """Every node healthy, in service and idle, nothing left of earlier tests."""
        for node in self.nodes:
            self.control(node)
        self.wait_until(self._all_idle, "all nodes are idle")

    def _all_idle(self):
        """Resume what is drained: more than once where an epilog that was still at work drains again."""
        states = {node: self.state(node) for node in self.nodes}
        for node, state in states.items():
            if "COMP" not in state and ("DRAIN" in state or "DOWN" in state):
                self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        return set(states.values()) == {"IDLE"}


def _rendered(template, given):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["quote"] = shlex.quote
    return environment.from_string((paths.shared("templates") / template).read_text()).render(**given)


def parts(folder):
    """What all nodes share: the program and the substitute NVML."""
    install.program(folder / "program")
    nvml_substitute.copied(folder / "nvml")
    return folder

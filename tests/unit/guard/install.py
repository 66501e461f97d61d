"""The guard as it is on a node, in a folder of its own: the program, its policy, the entry that Slurm calls."""

import compileall
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jinja2

from nodetune.config import profile
from nodetune.foundation import paths
from nodetune.guard.deploy import archive as parts
from nodetune.guard.deploy import policy
from nodetune.probe import guard as memory
from nodetune.remote import payload

PYTHON = str(Path(sys.executable).resolve())
LATEST = 60.0
"""Seconds after which what is waited for counts as not coming."""


def program(folder):
    """The files of the program, compiled as an installation does it."""
    for name, source in parts.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source if isinstance(source, str) else source.read_text())
    compileall.compile_dir(folder, quiet=1)
    return folder


def entry(**values):
    """The script that Slurm calls."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["quote"] = shlex.quote
    return environment.from_string((paths.shared("templates") / "guard-entry.sh.j2").read_text()).render(**values)


def children_of(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Machine:
    """A process namespace: on a real node nobody else's readers are about, and here other tests' are not either."""

    def __init__(self):
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "sleep", "infinity"]
        self._process = subprocess.Popen(command, start_new_session=True)
        deadline = time.monotonic() + LATEST
        while not (first := children_of(self._process.pid)) or _words(first[0])[0] != "sleep":
            assert self._process.poll() is None, "no process namespaces here"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self.enter = ("nsenter", "-t", str(first[0]), "--pid", "--mount")

    def end(self):
        self._process.kill()
        self._process.wait()


def _words(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return [""]


class Node:
    """One node. Its jobs hold GPUs 0 and 1 unless told otherwise; without `nvml` there is no NVML library on it.

    `machine` is the one that it shares with others; without one it is on this machine itself.
    """

    def __init__(self, folder, program, nvml=None, machine=None, **settings):
        self.enter = machine.enter if machine else ()
        self.folder, self.program, self.nvml = folder, program, nvml
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run_folder, self.policy, self.off = folder / "run", folder / "guard.json", folder / "off"
        self.library, self.kept = folder / "nvml", folder / "kept"
        self.library.mkdir(exist_ok=True)
        self.kept.mkdir(exist_ok=True)
        self.remember(gpus=0)
        self.write_policy(**{"mode": "enforce", **settings})
        self.write_entry()

    def write_policy(self, change=lambda data: None, **settings):
        settings = {"off": [str(self.folder / "off.policy")], **settings}
        data = policy.make(profile.resolve(profile.named(["training"])), "n01", settings)
        change(data)
        self.policy.write_text(json.dumps(data))

    def write_entry(self, **changes):
        values = {
            "run": str(self.run_folder),
            "kept": str(self.kept),
            "off": [str(self.off)],
            "seconds": 6,
            "python": PYTHON,
            "program": str(self.program),
            "policy": str(self.policy),
            **changes,
        }
        self.prolog = self.folder / "prolog"
        self.prolog.write_text(entry(**values))
        self.prolog.chmod(0o755)

    def remember(self, gpus, adapters=0, **more):
        """Let the guard have seen so much hardware."""
        made = {"machine": memory.machine(), "gpus": gpus, "adapters": adapters, **more}
        (self.kept / "hardware.json").write_text(json.dumps(made))

    def control(self, *lines):
        (self.library / "control").write_text("".join(f"{line}\n" for line in lines))

    def environment(self, job="7", gpus="0,1"):
        given = {"SLURMD_NODENAME": "n01", "SLURM_JOB_ID": job, "SLURM_JOB_GPUS": gpus}
        if self.nvml:
            given |= {"LD_LIBRARY_PATH": str(self.nvml), "NODETUNE_NVML_RUN": str(self.library)}
        return {name: value for name, value in given.items() if value is not None}

    def start(self, *arguments, shell=("/bin/sh",), before=(), environment=None, **job):
        """The entry under a shell, with nothing in its environment but what Slurm gives."""
        given = self.environment(**job) if environment is None else environment
        return subprocess.Popen(
            [*self.enter, *before, *shell, self.prolog, *arguments],
            env=given,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def call(self, *arguments, **options):
        """Run it to its end: what was said, and how it ended (0: the job runs)."""
        with self.start(*arguments, **options) as child:
            said, _ = child.communicate(timeout=LATEST)
        return Ended(child.returncode, said)

    def python(self, code):
        """Run this in the guard's interpreter, on the node."""
        command = [*self.enter, PYTHON, "-I", "-S", "-c", code]
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=True)

    def read(self, name):
        return (self.run_folder / name).read_text()

    def record(self, job="7"):
        return json.loads(self.read(f"failed/{job}.json"))

    def inconclusive(self):
        """How many times the guard was inconclusive."""
        blind, marks = self.run_folder / "blind", self.run_folder / "uncounted"
        counted = blind.read_text().split() if blind.exists() else []
        return int(counted[0] if counted else 0) + (len(os.listdir(marks)) if marks.exists() else 0)

    def forget(self):
        """Let no pass count any more."""
        shutil.rmtree(self.run_folder / "pass", ignore_errors=True)

    def readers(self):
        """The processes that read this node's GPUs, by their numbers outside of the node."""
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and self._reads(entry)]

    def _reads(self, pid):
        try:
            called = Path(f"/proc/{pid}/comm").read_text() == "nodetune:gpu\n"
            return called and str(self.library).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


class Ended:
    def __init__(self, code, said):
        self.code, self.said = code, said

    def __eq__(self, other):
        return (self.code, self.said) == other

    __hash__ = None

    def __repr__(self):
        return f"{self.code}: {self.said}"


RECOVERY = """
_field_values, _architecture = nvmlDeviceGetFieldValues, nvmlDeviceGetArchitecture


def nvmlDeviceGetArchitecture(handle):
    import os
    path = "%s/architecture" % (os.environ.get("NODETUNE_NVML_RUN") or "/run/nodetune-nvml")
    if not os.path.exists(path):
        return _architecture(handle)
    with open(path) as file:
        return int(file.read())


def nvmlDeviceGetFieldValues(handle, wanted):
    import os
    found = _field_values(handle, wanted)
    run = os.environ.get("NODETUNE_NVML_RUN") or "/run/nodetune-nvml"
    path = "%s/gpu%d/recovery_action" % (run, nvmlDeviceGetIndex(handle))
    for each in found:
        if each.fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION and os.path.exists(path):
            each.nvmlReturn, each.valueType = 0, NVML_VALUE_TYPE_UNSIGNED_INT
            with open(path) as file:
                each.value.uiVal = int(file.read())
    return found
"""
DRAIN_AND_RESET, AMPERE = "4", "7"


def plant_recovery(folder):
    """Let gpuN/recovery_action and architecture of the substitute's folder tell what its library has recorded (Hopper)."""
    path = folder / "pynvml.py"
    path.write_text(payload.pynvml_source() + RECOVERY)
    compileall.compile_file(path, quiet=1)
    return folder

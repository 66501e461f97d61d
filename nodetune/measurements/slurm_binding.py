"""Memory bandwidth of a Slurm job as the cluster places its tasks, when srun binds them to cores, and when it does not.

What, in GB/s of all tasks together: `job`: a step without binding options, like most jobs, so that TaskPlugin,
TaskPluginParam and the cores in gres.conf decide; `bound`: with --cpu-bind=cores and --mem-bind=local; `unbound`: with
--cpu-bind=none. A job far below `bound` is one that the cluster does not bind.
How: only inside an allocation of this node (SLURM_JOB_ID): steps of that job that share it with the one that measures (--overlap), a
task for each of some cores, each of which copies memory that it touched first, all at the same time.
Statistic: the median of the repeats. about: how many CPUs each task may use, and whether two tasks share a CPU.
Manually: srun --overlap -n8 -c4 [--cpu-bind=cores --mem-bind=local] with STREAM, or with taskset -cp 0 to see the binding
"""

import json
import os
import sys
import time

from nodetune.measurements.host import external_tool, numa
from nodetune.measurements.host import report as reporting

SECONDS = 180.0
SCOPE = "host"
ORDER = 140
SUITES = {}
TOLERANCE = {"": {"peers": 15, "baseline": 15, "drift": 5}}
SUSPECT = "how Slurm binds tasks (TaskPlugin, TaskPluginParam, gres.conf): {subject}"
MAX_TASKS = 8
STEP_SECONDS = 40
SAMPLE_SECONDS = 1.5
WAYS = (
    ("job", ()),
    ("bound", ("--cpu-bind=cores", "--mem-bind=local")),
    ("unbound", ("--cpu-bind=none",)),
)
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_CLUSTER_NAME", "LD_LIBRARY_PATH")
"""Variables to keep: all others that srun set for this step would bind the next one."""

TASK = """
import ctypes, json, mmap, os, sys, time
size, start, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
areas = [mmap.mmap(-1, size) for _ in range(2)]
held = [ctypes.c_char.from_buffer(each) for each in areas]
target, source = [ctypes.addressof(each) for each in held]
libc = ctypes.CDLL(None)
libc.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
for address in (target, source):
    libc.memset(address, 1, size)
late = time.time() - start
time.sleep(max(0.0, -late))
begin, rounds = time.perf_counter(), 0
while rounds == 0 or time.perf_counter() - begin < seconds:
    libc.memcpy(target, source, size)
    rounds += 1
rate = 2 * size * rounds / (time.perf_counter() - begin) / 1e9
print(json.dumps({"rate": rate, "late": late, "cpus": sorted(os.sched_getaffinity(0))}))
"""
START_SECONDS = 8.0
"""Seconds from the call of srun until all tasks begin to copy."""


def measure(options, report):
    """Measure. Options: tasks, size (bytes of a buffer), repeats."""
    program = external_tool.need("srun", "slurm-client")
    if not os.environ.get("SLURM_JOB_ID", "").isdigit():
        raise reporting.SkipError(
            "an allocation of this node is needed: salloc -N1 --exclusive nodetune verify --transport slurm --only slurm_binding"
        )
    cores = sum(len(numa.cores(cpus)[0]) for cpus in numa.nodes().values())
    tasks = int(options.get("tasks") or min(MAX_TASKS, cores))
    for metric, given in WAYS:
        report.step("{} tasks, {}".format(tasks, " ".join(given) or "as the cluster binds them"))
        try:
            runs = [
                step(program, (tasks, max(1, cores // tasks)), given, int(options.get("size", 64 << 20)))
                for _ in range(int(options.get("repeats", 3)))
            ]
        except reporting.MeasurementError as problem:
            report.failed(str(problem), "tasks", metric)
            continue
        rates = [sum(each["rate"] for each in run) for run in runs]
        report.result("tasks", rates, "GB/s", metric=metric, threads=tasks, **binding(runs[-1]))


def step(program, shape, given, size):
    """Run a step of the job on this node. Return the output of each task. Raise MeasurementError."""
    tasks, cpus = shape
    words = [external_tool.find("env") or "/usr/bin/env", "-i"]
    words += ["{}={}".format(name, os.environ[name]) for name in KEPT if name in os.environ]
    words += [program, "--overlap", "--nodes=1", "--ntasks={}".format(tasks), "--cpus-per-task={}".format(cpus)]
    words += ["--mem=0", "--mpi=none", "--input=none", "--kill-on-bad-exit=1", "--quit-on-interrupt", *given]
    if os.environ.get("SLURMD_NODENAME"):
        words.append("--nodelist=" + os.environ["SLURMD_NODENAME"])
    start = time.time() + START_SECONDS
    words += [sys.executable, "-I", "-S", "-c", TASK, str(size), str(start), str(SAMPLE_SECONDS)]
    return read(external_tool.run(words, STEP_SECONDS), tasks)


def read(text, tasks):
    """Parse what the tasks printed. Raise MeasurementError."""
    try:
        found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        late = max([each["late"] for each in found], default=0.0)
        rates, cpus = [float(each["rate"]) for each in found], [list(each["cpus"]) for each in found]
    except (ValueError, KeyError, TypeError):
        raise reporting.MeasurementError("unexpected output of the tasks: " + text[:200])
    usable = sum(1 for rate, own in zip(rates, cpus) if rate and own)
    if len(found) != tasks or usable != tasks:
        raise reporting.MeasurementError("{} of {} tasks reported a usable result".format(usable, tasks))
    if late > 0:
        raise reporting.MeasurementError("a task began {:.1f} s after the others: the node is busy".format(late))
    return found


def binding(run):
    """Return {"cpus_a_task": at most, "shared": whether two tasks may use the same CPU}."""
    places = [set(each["cpus"]) for each in run]
    every = set().union(*places)
    return {"cpus_a_task": max(map(len, places)), "shared": sum(map(len, places)) > len(every)}

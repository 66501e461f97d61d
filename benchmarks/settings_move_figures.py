"""Finds out whether figures of `verify` move when settings do: each measurement with a setting wrong and right, as far as this
machine has it. Every case (all, unless some are named) changes something of its own (a loop disk, network namespaces, a
process) or puts back what it changed (idle states). Runs alternate, wrong and right, so that a busy machine slows both. The
table has the medians, the exact Mann-Whitney test of `verify --compare` with its interval, and whether that calls the change
real. Cases that cannot run here are listed with the reason. It takes root."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import click

from benchmarks.support import own_settings
from benchmarks.support.measuring import COUNT, UnavailableError, benchmark
from benchmarks.support.own_settings import loop_disk, pair, run, set_buffers, slow_disk, together, two_hosts
from nodetune.verify import compare
from nodetune.verify.model import Figure

ROOT = Path(__file__).resolve().parents[1]
SIZE = 128 << 20
FIRST = ("nice", "-n", "-20")
"""Before whatever else works on this machine, which would hide the difference."""
SYSTEM = Path("/sys/devices/system")
HEAD_START = 5
"""Seconds until a program that runs meanwhile is at work."""
WITHOUT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
WITHOUT_HUGE_PAGES = (sys.executable, "-c", WITHOUT)
"""Before a program that gets no huge pages (PR_SET_THP_DISABLE), as if `enabled` were never, for it alone."""


def measured(name, prefix=(), **options):
    """Records of one measurement in a process of its own, by metric; of several subjects the first."""
    text = run(*prefix, sys.executable, "-m", "nodetune.measurements", name, json.dumps(options), 300, cwd=ROOT)
    found = {}
    for record in map(json.loads, text.splitlines()):
        if "samples" not in record:
            raise UnavailableError(record.get("skip") or record.get("failed"))
        found.setdefault(record["metric"], record)
    return found


# The cases: each yields (setting, wrong, right, what measures with such a value, the metrics that should move)


def read_ahead(folder):
    with loop_disk(folder) as (place, settings), slow_disk(settings, 2000) as slowed:

        def act(value):
            (settings / "read_ahead_kb").write_text(str(value))
            return measured("disk_buffered", slowed, dir=str(place), size=SIZE // 2, repeats=1)

        yield "read_ahead_kb 0 → 128, disk of 2000 reads/s", 0, 128, act, ["read"]
        yield "read_ahead_kb 128 → 4096, disk of 2000 reads/s", 128, 4096, act, ["read"]


def dirty_limit(folder):
    with loop_disk(folder) as (place, settings):

        def act(value):
            (settings / "strict_limit").write_text("1" if value else "0")
            (settings / ("max_bytes" if value else "max_ratio")).write_text(str(value or 100))
            return measured("disk_buffered", dir=str(place), size=SIZE, repeats=1)

        yield "dirty limit of the disk 4 MiB → of the host", 4 << 20, 0, act, ["write", "write_fsync"]


def synchronous(folder):
    with loop_disk(folder) as (place, _settings):

        def act(value):
            run("mount", "-o", f"remount,{value}", place)
            return measured("disk_files", dir=str(place), count=500, repeats=1)

        yield "mount option sync → async", "sync", "async", act, ["create", "unlink", "stat"]


def access_times(folder):
    with loop_disk(folder) as (place, _settings):

        def act(value):
            run("mount", "-o", f"remount,{value}", place)
            return measured("disk_files", FIRST, dir=str(place), repeats=1)

        yield "mount option strictatime → noatime", "strictatime", "noatime", act, ["open"]


def nfs_options(folder):
    place, sizes = Path(folder) / "nfs", "rsize={0},wsize={0}"
    place.mkdir()

    def act(name, options, value):
        told = f"vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,soft,timeo=50,{value}"
        run("mount", "-i", "-t", "nfs4", "-o", told, "127.0.0.1:/", place)
        try:
            return measured(name, dir=str(place), repeats=1, **options)
        finally:
            run("umount", place)

    files, stream = partial(act, "disk_files", {"count": 300}), partial(act, "disk_buffered", {"size": SIZE // 2})
    yield "NFS mount option noac → ac", "noac", "ac", files, ["stat", "open"]
    yield (
        "NFS rsize, wsize 4 KiB → what the server grants of 1 MiB",
        sizes.format(4 << 10),
        sizes.format(1 << 20),
        stream,
        ["read", "write_fsync"],
    )


def windows(folder):
    with two_hosts(folder) as targets:

        def act(value):
            set_buffers(targets, rmem=f"4096 16384 {value}")
            return pair(targets, seconds=2)

        yield "tcp_rmem max 16 KiB → 16 MiB", 16 << 10, 16 << 20, act, ["one_stream", "tcp"]


def far_away(folder):
    with own_settings.distant_hosts(folder, 300, 50) as targets:

        def act(value):
            set_buffers(targets, rmem=f"4096 131072 {value[0]}", wmem=f"4096 65536 {value[1]}")
            return pair(targets, seconds=5)

        kernel, wanted = (6 << 20, 4 << 20), (64 << 20, 64 << 20)
        yield "tcp_rmem, tcp_wmem of the kernel → 64 MiB, 300 Mb/s, 100 ms", kernel, wanted, act, ["one_stream"]


def loss(folder):
    with two_hosts(folder) as targets:

        def act(value):
            limit = value.split()
            run("ip", "netns", "exec", targets[1].name, "tc", "qdisc", "replace", "dev", "eth0", "root", *limit)
            return pair(targets, seconds=2)

        short, long = "tbf rate 500mbit burst 16kb limit 20kb", "tbf rate 500mbit burst 64kb limit 2mb"
        yield "queue of the link 20 kB → 2 MB", short, long, act, ["one_stream", "tcp"]


def scheduler(folder):
    with loop_disk(folder) as (place, settings):
        chosen = Path("/sys/dev/block") / settings.name / "queue/scheduler"

        def act(value):
            chosen.write_text(value)
            return measured("disk", dir=str(place), size=SIZE, repeats=1, seconds=2, metrics=["random_read"])

        yield "I/O scheduler bfq → none", "bfq", "none", act, ["random_read"]


def nvme_scheduler(_folder):
    """The file is on the first NVMe drive that is mounted."""
    mounts = (line.split()[:2] for line in Path("/proc/mounts").read_text().splitlines())
    found = next(((disk, place) for disk, place in mounts if disk.startswith("/dev/nvme")), None)
    if found is None:
        raise UnavailableError("no NVMe drive is mounted")
    number = Path(found[0]).stat().st_rdev
    disk = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    chosen = (disk if (disk / "queue").exists() else disk.parent) / "queue/scheduler"
    before = chosen.read_text().split("[")[1].split("]")[0]

    def act(value):
        chosen.write_text(value)
        return measured("disk", dir=found[1], size=SIZE, repeats=1, seconds=2, metrics=["random_read"])

    try:
        yield "I/O scheduler of an NVMe drive bfq → none", "bfq", "none", act, ["random_read"]
    finally:
        chosen.write_text(before)


def operations_limit(folder):
    with loop_disk(folder) as (place, settings), slow_disk(settings, 2000) as slowed:
        asked = {"dir": str(place), "size": SIZE, "repeats": 1, "seconds": 2, "metrics": ["random_read"]}

        def act(value):
            return measured("disk", value, **asked)

        metrics = ["random_read", "random_read_p99"]
        yield "limit of the control group 2000 reads/s → none", slowed, (), act, metrics


def rail_windows(folder):
    with two_hosts(folder) as targets:

        def act(value):
            set_buffers(targets, rmem=f"4096 16384 {value}")
            return {each["metric"]: each for each in together(targets, "rails", {"over": "tcp"})}

        yield "tcp_rmem max 16 KiB → 16 MiB", 16 << 10, 16 << 20, act, ["rails"]


def queue_under_load(folder):
    """A round trip waits behind what another program sends."""
    with two_hosts(folder) as targets, own_settings.bulk_sent(targets, 20):

        def act(value):
            run("ip", "netns", "exec", targets[0].name, "tc", "qdisc", "replace", "dev", "eth0", "root", *value.split())
            return {each["metric"]: each for each in together(targets, "tcp_latency", {"seconds": 2, "repeats": 1})}

        long, short = (f"tbf rate 20mbit burst 16kb limit {limit}" for limit in ("500kb", "25kb"))
        yield "queue of a link that others fill 500 kB → 25 kB", long, short, act, ["median"]


def huge_pages(_folder):
    for name in ("memory_latency", "memory"):
        yield "huge pages never → madvise", WITHOUT_HUGE_PAGES, (), partial(measured, name, repeats=1), ["local"]


def isolation(_folder):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise UnavailableError("it takes two CPUs")

    def act(value):
        return measured("jitter", FIRST, load=True, services=value, cpus=[cpus[-1]], repeats=1)

    every, kept = f"{cpus[0]}-{cpus[-1]}", str(cpus[0])
    yield f"services on all CPUs → not on CPU {cpus[-1]}", every, kept, act, ["lost", "longest"]


def allowed_cpus(_folder):
    """Services that compute, four for each CPU, in the group that systemd confines; what is measured runs outside of it."""
    cpus, controllers = sorted(os.sched_getaffinity(0)), Path("/sys/fs/cgroup/cgroup.controllers")
    running = Path("/run/systemd/system").exists() and controllers.exists()
    if len(cpus) < 2 or not running or "cpuset" not in controllers.read_text():
        raise UnavailableError("it takes two CPUs, and a systemd that confines its services to some")
    every, kept = f"{cpus[0]}-{cpus[-1]}", str(cpus[0])
    units = [f"nodetune-bench-{number}" for number in range(4 * len(cpus))]
    confine = ("systemctl", "set-property", "--runtime", "system.slice")

    def act(value):
        run(*confine, f"AllowedCPUs={value}")
        outside = ("systemd-run", "-q", "--scope", "--slice=nodetune-bench.slice")
        return measured("jitter", outside, load=False, cpus=[cpus[-1]], repeats=1)

    try:
        for unit in units:
            run("systemd-run", "-q", f"--unit={unit}", sys.executable, "-c", "while True: pass")
        yield f"AllowedCPUs= of system.slice all → not CPU {cpus[-1]}", every, kept, act, ["lost", "longest"]
    finally:
        run("systemctl", "kill", "--signal=KILL", *units)
        run(*confine, f"AllowedCPUs={every}")  # an empty list would leave the last one in force
        run(*confine, "AllowedCPUs=")


@contextlib.contextmanager
def switches(pattern, missing):
    """Yield what writes a value to all files of /sys with this pattern; put back what was in them."""
    before = {file: file.read_text() for file in SYSTEM.glob(pattern)}
    if not before:
        raise UnavailableError(missing)
    try:
        yield lambda value: [file.write_text(value) for file in before]
    finally:
        for file, text in before.items():
            file.write_text(text)


def idle_states(_folder):
    with switches("cpu/cpu*/cpuidle/state[1-9]*/disable", "no idle states to switch here (cpuidle)") as switch:

        def act(value):
            switch(value)
            return measured("wakeup", FIRST, repeats=1)

        yield "idle states above POLL on → off", "0", "1", act, ["median", "p99"]


def far_memory(_folder):
    if len(list(SYSTEM.glob("node/node[0-9]*"))) < 2:
        raise UnavailableError("one NUMA node: no memory is far away")

    def act(value):
        return {"latency": measured("memory_latency", repeats=1)[value]}

    yield "memory of another NUMA node → of its own", "remote", "local", act, ["latency"]


def nccl_protocol(folder):
    targets = own_settings.posed_hosts(folder)
    asked = {"sizes": [64 << 20], "collectives": ["all_reduce"], "in_place": False, "repeats": 3, "gpus": [0]}

    def act(value):
        return {each["metric"]: each for each in together(targets, "nccl", asked, **value)}

    yield "NCCL_PROTO LL → NCCL's choice, two ranks on one GPU", {"NCCL_PROTO": "LL"}, {}, act, ["all_reduce"]


def two_gpus(_folder):
    asked = {"sizes": [256 << 20], "collectives": ["all_reduce"], "in_place": False, "repeats": 3, "latency_sizes": []}

    def act(name, value):
        return measured(name, ("env", *value), **asked)

    yield "NCCL_P2P_DISABLE=1 → not set", ("NCCL_P2P_DISABLE=1",), (), partial(act, "nccl"), ["all_reduce"]
    channels = ("NCCL_MIN_CTAS=64",)
    yield "NCCL_MIN_CTAS=64 → not set", channels, (), partial(act, "nccl_overlap"), ["gemm_with_all_reduce"]


@contextlib.contextmanager
def at_work(commands):
    """Have these programs run meanwhile."""
    running = [
        subprocess.Popen(each, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT) for each in commands
    ]
    try:
        time.sleep(HEAD_START if running else 0)
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def busy_cpus(_folder):
    def act(value):
        with at_work([(sys.executable, "-c", "while True: pass")] * value):
            return measured("gpu_latency", gpus=[0])

    yield "a program on each CPU, or none", os.cpu_count() or 1, 0, act, ["launch", "launch_pipelined", "launch_graph"]


def busy_host(_folder):
    def act(name, value):
        with at_work([(sys.executable, "-c", "while True: pass")] * value):
            return measured(name, repeats=2)

    count = os.cpu_count() or 1
    for name, metrics in (("decompress", ["zstd", "lz4", "zstd_all"]), ("wakeup", ["median", "p99"])):
        yield "a program on each CPU, or none", count, 0, partial(act, name), metrics


def neighbour(name, **options):
    return sys.executable, "-m", "nodetune.measurements", name, json.dumps({"gpus": [0], **options}), "300"


def _with_neighbour(does, others, name, metric, **options):
    def act(value):
        with at_work([others] * value):
            return measured(name, **{"gpus": [0], **options})

    return f"another program {does}, or none", 1, 0, act, [metric]


PRODUCTS = ("computes on the GPU", neighbour("gpu_load", seconds=200))
COPIES = ("copies to the GPU", neighbour("gpu_copy", repeats=10**6))
COPIES_OF_BOTH = ("copies between both GPUs", neighbour("gpu_p2p", gpus=[0, 1], repeats=10**6))


def shared_gpu(_folder):
    yield _with_neighbour(*PRODUCTS, "gemm", "bf16")
    yield _with_neighbour(*PRODUCTS, "gpu_load", "tflops", seconds=5)
    yield _with_neighbour(*PRODUCTS, "gpu_memory", "device_copy")
    yield _with_neighbour(*COPIES, "gpu_copy", "h2d")
    yield _with_neighbour(*COPIES_OF_BOTH, "gpu_p2p", "p2p", gpus=[0, 1])


def shared_roofs(_folder):
    yield _with_neighbour(*PRODUCTS, "roofline", "bf16", metrics=["bf16"])
    yield _with_neighbour(*COPIES, "gpu_overlap", "pageable_h2d")


def training_step(_folder):
    def act(value):
        return measured("training_step", ("env", *value))

    metrics = ["step", "tflops", "all_reduce_hidden"]
    yield "NCCL_P2P_DISABLE=1 → not set", ("NCCL_P2P_DISABLE=1",), (), act, metrics


def governor(_folder):
    missing = "no cpufreq: a virtual machine has no governor and no clock to read"
    with switches("cpu/cpu*/cpufreq/scaling_governor", missing) as switch:

        def act(value):
            switch(value)
            return measured("clock", readings=4)

        yield "governor powersave → performance", "powersave", "performance", act, ["clock", "single"]


CASES = (
    *(read_ahead, dirty_limit, synchronous, access_times, nfs_options, scheduler, nvme_scheduler, operations_limit),
    *(windows, far_away, loss, rail_windows, queue_under_load),
    *(huge_pages, isolation, allowed_cpus, idle_states, far_memory, governor, busy_host, nccl_protocol),
    *(two_gpus, busy_cpus, shared_gpu, shared_roofs, training_step),
)
ELSEWHERE = {
    "slurm_binding": "tests/integration/slurm/test_slurm_binding.py shows it on a real Slurm; bandwidth needs two NUMA nodes",
    "rdma, rdma_latency, rdma_gpu": "needs two RDMA adapters; with GPUs for the latter",
    "disk_gds": "needs an NVIDIA GPU and a file system that GPUDirect Storage supports",
    "interrupts and queues of a network card": "needs a card with several queues, and CPUs that nothing emulates",
    "Lustre": "needs a server and a kernel with its client",
}


# Two sides of a case


def sides(case, runs):
    """Yield (setting, metric, Figure with the wrong setting, Figure with the right one)."""
    setting, wrong, right, act, metrics = case
    found = [(act(wrong), act(right)) for _ in range(runs)]
    for metric in metrics:
        yield setting, metric, *(_figure([each[side][metric] for each in found]) for side in range(2))


def _figure(records):
    first = records[0]
    samples = tuple(tuple(max(sample, 1e-6) for sample in record["samples"]) for record in records)
    return Figure("here", first["measurement"], first["metric"], "x", samples, first["unit"], first["better"])


def show(setting, metric, wrong, right):
    """Print the row of a figure, and return what `verify --compare` says of the change."""
    (change,) = compare.compare([wrong], [right])
    interval = "" if change.interval is None else " … ".join(f"{1 + each:.3g}" for each in change.interval)
    values = [f"{statistics.median(each.by_run):.4g}" for each in (wrong, right)]
    name = f"{wrong.measurement} {metric}" if metric != wrong.measurement else metric
    print("|", " | ".join([name, setting, *values, wrong.unit, interval, change.status]), "|", flush=True)
    return change.status


@benchmark(__doc__, names=("synchronous",), runs=1)
@click.argument("names", nargs=-1, metavar="[CASE]...", type=click.Choice([make.__name__ for make in CASES]))
@click.option("--runs", default=5, type=COUNT, show_default=True)
def main(names, runs):
    head = ("figure", "setting", "wrong", "right", "unit", "right / wrong, 99 %", "seen")
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    missing, seen = {}, []
    for make in CASES:
        if names and make.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            try:
                for case in make(folder):
                    seen += [show(*side) for side in sides(case, runs)]
            except UnavailableError as why:
                missing[make.__name__] = str(why)
    if not seen:
        raise UnavailableError("; ".join(f"{name}: {why}" for name, why in missing.items()))
    print("\nNot had here:")
    for name, why in {**missing, **ELSEWHERE}.items():
        print(f"- {name}: {why}")
    return {"settings_move_figures": f"{seen.count(compare.BETTER)} of {len(seen)}"}


if __name__ == "__main__":
    main()

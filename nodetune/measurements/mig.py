"""GPU instances (MIG): device memory and matrix products of each one, alone and with its neighbours busy.

Metrics copy (GB/s, read and written) and bf16 (TFLOP/s) of an instance while the others are idle; copy_busy and bf16_busy with
the same load on all instances of the GPU at once. Equal instances ("GPU0 1g.18gb #2") are peers. An instance has its own SMs
and memory, so that neighbours cost it little; what they share is the power limit, and with it the clock. One process an
instance, as jobs have; copies and products are checked as those of gpu_memory and gemm are.

Manually: CUDA_VISIBLE_DEVICES=MIG-… nvbandwidth -t device_local_copy, for each line of nvidia-smi -L.
Options: gpus, n, size (bytes), seconds (of each load), library (path).
"""

from nodetune.onhost import nvml as onhost
from nodetune.measurements.cuda import gpu_processes, gpus
from nodetune.measurements.host import report as reporting

SECONDS = 600.0
SCOPE = "gpus"
ORDER = 90
SUITES = {}
TOLERANCE = {"": {"peers": 7, "baseline": 7, "drift": 2}}
LOADS = {"copy": gpu_processes.copy, "bf16": gpu_processes.multiply}
UNITS = {"copy": "GB/s", "bf16": "TFLOP/s"}


def measure(options, report):
    found = [seen for seen in gpu_processes.chosen(options, report) if seen.partitioned()]
    if not found:
        raise reporting.SkipError("no GPU is in MIG mode")
    for seen in found:
        with gpus.apart(report, seen.name):
            _one(instances(seen), dict({"n": 4096}, **options), report)


def instances(seen):
    """Return the instances of a GPU. Raise SkipError if it has none."""
    found = []
    for index in range(seen.ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
        handle = seen.ask("nvmlDeviceGetMigDeviceHandleByIndex", index)
        if handle is not None:
            instance = gpus.Seen("", seen.library, handle)
            uuid, name = [onhost.decoded(instance.ask(each)) for each in ("nvmlDeviceGetUUID", "nvmlDeviceGetName")]
            found.append(gpu_processes.Part("{} {} #{}".format(seen.name, name.rpartition("MIG ")[2], index), uuid))
    if not found:
        raise reporting.SkipError("MIG is on and it has no instance")
    return found


def _one(parts, options, report):
    measured = gpu_processes.measured(parts, LOADS, options, report)
    for (metric, busy), rates in measured.items():
        about = {"n": options["n"]} if metric == "bf16" else {}
        for part, samples in zip(parts, rates):
            name = metric + ("_busy" if busy else "")
            report.result(part.name, samples, UNITS[metric], metric=name, instances=len(parts), checked=True, **about)

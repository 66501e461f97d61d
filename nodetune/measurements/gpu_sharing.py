"""A GPU shared by small processes: how much all of them do together, and whether each gets its share.

Four processes queue small matrix products (512 by 512: a tenth of the GPU's multiprocessors) from CUDA graphs, first one
process alone, then all at once. Metric total, in % of what one does alone: time-sliced processes take turns, so four do not
much more than one (100 %); under MPS they run together and reach several times as much. Metric least: what the slowest of them
got, in % of an equal share. `mps` says whether the MPS daemon serves these processes; nodetune neither starts nor stops it.

Manually: four loops of small kernels, with and without nvidia-cuda-mps-control -d.
Options: gpus, processes, n, seconds (of each load), library (path).
"""

import os

from nodetune.onhost import nvml as onhost
from nodetune.measurements.cuda import gpu_processes, gpus

SECONDS = 300.0
SCOPE = "gpus"
ORDER = 92
SUITES = {}
TOLERANCE = {"": {"peers": 15, "baseline": 15, "drift": 5}}
SUSPECT = "what else runs on {gpu}, or its scheduling of processes"
IN_GRAPH = 100


def measure(options, report):
    options = dict({"n": 512}, **options)
    count = int(options.get("processes", 4))
    for seen in gpu_processes.chosen(options, report):
        with gpus.apart(report, seen.name):
            if seen.partitioned():
                report.skip("MIG is on: measure its instances with --only mig", seen.name)
            else:
                _one(seen, count, options, report)


def _one(seen, count, options, report):
    uuid = onhost.decoded(seen.ask("nvmlDeviceGetUUID") or seen.name[3:])
    parts = [gpu_processes.Part("{} process {}".format(seen.name, number), uuid) for number in range(count)]
    found = gpu_processes.measured(parts, {"products": _small_products}, options, report)
    alone = _mean(found["products", False][0])
    together = [_mean(rates) for rates in found["products", True]]
    about = {"n": options["n"], "processes": count, "mps": served(), "alone": round(alone, 3), "checked": True}
    report.result(seen.name, [100.0 * sum(together) / alone], "%", metric="total", **about)
    report.result(seen.name, [100.0 * min(together) * count / sum(together)], "%", metric="least", **about)


def _small_products(gpu, options):
    return gpu_processes.multiply(gpu, options, in_graph=IN_GRAPH)


def _mean(rates):
    return sum(rates) / len(rates)


def served():
    """Return whether an MPS daemon serves processes of this environment."""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    return os.path.exists(os.path.join(folder, "control"))

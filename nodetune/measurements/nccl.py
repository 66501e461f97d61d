"""NCCL's collectives between GPUs of one node or of several: all_reduce, all_gather, reduce_scatter, alltoall, sendrecv.

One process a GPU, as in training; no MPI: the first rank's unique id goes to the others through pipes, and from host to
host through the controller. Sizes, bandwidths and the order of things are those of nccl-tests (see nccl_ops, nccl_rank):
float32, sum, a size is that of the larger buffer, busbw in GB/s, the mean over all ranks; each collective is first
checked on small integers, every element on every rank. A figure is the median of `repeats`; each repeat is the mean of
`iterations` calls. Each figure comes with what NCCL really used for it, from its own log: the transport (P2P, SHM,
NET/IB, NET/Socket), the kind of link, the network adapters, GPUDirect RDMA, NVLS, the algorithm.

The environment stays as it is (NCCL_* variables, /etc/nccl.conf), but for NCCL_DEBUG*.

Manually: all_reduce_perf -b 64M -e 16G -f 4 -g 8 -n 20, of https://github.com/NVIDIA/nccl-tests

Small messages are measured for latency (`latency_sizes`): the time of one call in µs, metrics all_reduce_latency and
alltoall_latency, out of place. It is nccl-tests' "time": calls queued one after another, so what the CPU takes to launch one
is in it. An alltoall has no size below 16 bytes for each rank. It is one call from NCCL 2.28 on, as in nccl-tests; before, it
is a group of sends and receives.

Metric least_link: how evenly the NVLinks of each GPU carried all of this, as the measurement nvlink counts it.

Two buffers of the largest size and NCCL's own must fit into the free memory of every GPU: sizes that do not are left out.
Smaller sizes come first, so that where links are slow and the time is short, the largest are the ones that are missing.

Options: collectives, sizes (bytes), latency_collectives, latency_sizes (bytes; none where left out), in_place (true, false; both where left out), dtype (float32, bfloat16), gpus (numbers),
repeats, iterations, warmup, check, nccl (file or folder of libnccl.so.2), nccl_tests (a folder with the programs: these
measure instead, on one node).
"""

from nodetune.measurements.nccl_support import nccl_cases, nccl_rank, nccl_results, nccl_run

SECONDS = 120.0
SCOPE = "collective"
GPUS = 2
ORDER = 100
SUITES = {
    # 0.5, 2 and 16 GiB
    "quick": {"options": {"collectives": ["all_reduce"], "sizes": [536870912, 2147483648, 17179869184]}},
    "full": {"options": {"latency_sizes": [8, 64, 512, 4096, 16384, 65536]}, "seconds": 240},
    "nccl": {"options": {"latency_sizes": [8, 64, 512, 4096, 16384, 65536]}, "seconds": 240},
}
TOLERANCE = {
    "": {"peers": 5, "baseline": 5, "drift": 1},
    "all_reduce_latency": {"peers": 20, "baseline": 20, "drift": 5},
    "alltoall_latency": {"peers": 20, "baseline": 20, "drift": 5},
    "least_link": {"peers": 3, "baseline": 3, "drift": 1},
}
SIZE_MATTERS = True
SIZES = (67108864, 268435456, 1073741824, 4294967296, 17179869184)  # 64 MiB to 16 GiB


def measure(options, report):
    """Measure, and record one figure for each collective, size, and out of place or in place."""
    asked = nccl_cases.checked(options, SIZES)
    if options.get("nccl_tests"):
        from nodetune.measurements.nccl_support import nccl_tests

        if asked["latency_sizes"]:
            report.note("no latency of small messages: nccl-tests measure here, and only the larger sizes")
        nccl_tests.run(asked, options, report)
        return
    cases, jobs, conditions, of = nccl_run.prepared(dict(asked, links=True), nccl_cases.planned, report)
    nccl_run.run(jobs, nccl_results.Results(cases, jobs, conditions, of, report), report, nccl_rank.take_part)

"""RDMA write bandwidth from one host's GPU memory to another's (GPUDirect RDMA), GPU and adapter by GPU and adapter.

What: as rdma, which measures the same with host memory, in Gb/s; but the buffers of both hosts are in the memory of a GPU
(perftest's --use_cuda). Each active port of each adapter with the GPUs nearest to it by the tree of PCIe bridges, else with
those of its NUMA node; option `all`: with every GPU. Where this is far below rdma's figure of the same adapter, the
adapter does not reach the GPU directly: ACS, IOMMU, a path through the CPU, or memory that takes no relaxed ordering.
How: as rdma. Memory is registered by the module nvidia_peermem where it is loaded, else as dma-buf (about["by"]). It takes
a perftest that was built with CUDA, which those of distributions are not.
Statistic: the median of the repeats.
Manually: CUDA_DEVICE_ORDER=PCI_BUS_ID ib_write_bw -d DEVICE -i PORT --use_cuda=N [--use_cuda_dmabuf] -s 1048576 -q 2 -D 3 -F
--report_gbits, and on the other host the same with the first one's address at the end; nvidia-smi topo -m
"""

import os

from nodetune.onhost import files
from nodetune.measurements.host import external_tool, numa
from nodetune.measurements.host import report as reporting
from . import rdma

SECONDS = 600.0
SCOPE = "pair"
ORDER = 135
SUITES = {}
BY_NAME = True
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}}
SIZE_MATTERS = True
ALL_PAIRS_SECONDS = 1800
PROC = "/proc/driver/nvidia/gpus"
PCI = "/sys/bus/pci/devices"
PEERMEM = "/sys/module/nvidia_peermem"


def measure(options, report):
    """Measure. Options: those of rdma, and all (True: every GPU with every port), dmabuf (True or False: register so)."""
    program = external_tool.need("ib_write_bw", rdma.PACKAGE)
    found = rdma.ports(options)
    if not found:
        raise reporting.SkipError("no RDMA adapter with an active port on this host")
    chosen = lanes(found, gpus(), bool(options.get("all")))
    if not chosen:
        raise reporting.SkipError("no NVIDIA GPU or no driver on this host")
    if b"--use_cuda" not in help_of(program):
        raise reporting.SkipError(
            "this perftest was built without CUDA: build it with ./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h"
        )
    dmabuf = by_dmabuf(options)
    for about in chosen.values():
        about["by"] = "dma-buf" if dmabuf else "nvidia_peermem"
    rdma.play(
        report, options, chosen, lambda name, port: command(program, options, chosen[name], port, dmabuf), rdma.record
    )


def by_dmabuf(options):
    """Return whether memory is registered as dma-buf: by the option, else where nvidia_peermem is not loaded."""
    return bool(options.get("dmabuf", not os.path.isdir(PEERMEM)))


def help_of(program):
    """Return the help text of perftest."""
    return external_tool.run([program, "--help"], 10, ok=range(256)).encode("utf-8")


def command(program, options, about, port, dmabuf):
    """Return one run: that of rdma, with the buffers on a GPU. --use_cuda_dmabuf must come after --use_cuda."""
    given = [external_tool.find("env") or "/usr/bin/env", "CUDA_DEVICE_ORDER=PCI_BUS_ID"]
    given += rdma.command(program, options, about["adapter"], port)
    return given + ["--use_cuda={}".format(about["gpu"])] + (["--use_cuda_dmabuf"] if dmabuf else [])


def gpus():
    """Return the PCI addresses of the GPUs, in the order in which CUDA counts them by address."""
    return files.names(PROC)


def lanes(found, addresses, every):
    """Return {"GPU0 mlx5_0/1": its conditions} for each port with its nearest GPUs, or with every GPU."""
    chosen = {}
    for port in sorted(found):
        near = nearness(port.partition("/")[0], addresses)
        for index, address in enumerate(addresses):
            if every or near[address] == max(near.values()):
                about = dict(found[port], adapter=port, gpu=index, shared_bridges=near[address][0])
                chosen["GPU{} {}".format(index, port)] = about
    return chosen


def nearness(device, addresses):
    """Return for each GPU (how many PCIe bridges it shares with an adapter, whether it is on the same NUMA node)."""
    adapter = os.path.realpath("{}/{}/device".format(rdma.CLASS, device))
    node = numa.gpu_node(os.path.basename(adapter)) if ":" in os.path.basename(adapter) else None
    return {
        each: (
            _shared(adapter, os.path.realpath("{}/{}".format(PCI, each))),
            node is not None and numa.gpu_node(each) == node,
        )
        for each in addresses
    }


def _shared(one, other):
    """Return how many bridges are above both devices: folders with a PCI address in the paths that both have."""
    return sum(part.count(":") == 2 for part in os.path.commonpath([one, other]).split("/"))

"""GPUDirect RDMA has neither dma-buf nor nvidia_peermem.

Why it matters: For GPUDirect RDMA, the driver must give the RDMA stack access to GPU memory: through dma-buf (Linux
5.12 or newer and NVIDIA's open kernel modules) or through the nvidia_peermem module. With neither, NCCL copies
everything through host memory, at a fraction of the bandwidth and without an error. NCCL prefers dma-buf, and where it
works, nvidia_peermem is not needed.
Healthy exception: A management card that can do RoCE is not meant for GPU traffic. GeForce cards and the GPU of a DGX Spark
have GPUDirect RDMA by neither path.
Does not gate: Jobs run with less bandwidth, and jobs on one node do not need it.
Confirm manually: lsmod | grep peermem; uname -r; modinfo -F license nvidia (open modules: Dual MIT/GPL)
Side effects of the fix: None for running work: programs that start later use the path. A new RDMA driver package needs
the NVIDIA driver rebuilt, or the module no longer loads. It is loaded only if it was built against RDMA drivers with
peer memory (its file needs ib_core). Otherwise the open kernel modules on a kernel of 5.12 or newer are the way.
Sources: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html ;
https://github.com/NVIDIA/open-gpu-kernel-modules/pull/630 ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html ;
https://github.com/NVIDIA/gdrcopy/issues/211 (GeForce) ;
https://github.com/aikitoria/open-gpu-kernel-modules/issues/20 (GeForce with open modules) ;
https://forums.developer.nvidia.com/t/dgx-spark-gpudirect-rdma/348787
"""

from __future__ import annotations

import re

from nodetune.api import GPU_ON_PCI, RDMA, Absent, Check, FactsView, OneOf, Unread, Value, module
from nodetune.checks.shared.gpu_cards import WITHOUT_GPUDIRECT, readable_names
from nodetune.checks.shared.pci_devices import AMAZON
from nodetune.checks.shared.rdma_ports import PEERMEM, for_gpus


def observe(facts: FactsView) -> Value | Absent | Unread:
    if all(device["vendor"] in (AMAZON, None) for device in facts["rdma.devices"].values()):
        return Absent("no RDMA hardware that uses this path")
    if not for_gpus(facts["rdma.ports"]):
        return Absent("no active RDMA port of 100 Gb/s or more")
    names = readable_names(facts)
    if names and all(WITHOUT_GPUDIRECT.search(name) for name in names):
        return Absent("no GPU of this host can do GPUDirect RDMA")
    flavour, kernel = facts.get("kernel.nvidia_flavour"), facts["host.kernel"]
    if flavour == "open" and _kernel(kernel) >= (5, 12):
        return Value("dma-buf")
    if PEERMEM & set(facts["modules.loaded"]):
        return Value("nvidia_peermem")
    if flavour is None:
        return Absent("the NVIDIA driver is not loaded")
    if flavour == "open" and ".el" in kernel:
        return Unread("a vendor kernel: its version does not show whether dma-buf works")
    return Value("none") if names else Unread("the models of the GPUs are unknown, and GeForce has neither path")


def cause(facts: FactsView, _subjects: tuple[str, ...]) -> str:
    """Name which of the two this kernel and driver could offer."""
    flavour, depends = facts["kernel.nvidia_flavour"], facts.get("modules.depends.nvidia_peermem")
    if depends is None:
        peermem = "the kernel has no nvidia_peermem"
    else:
        peermem = "nvidia_peermem can be loaded" if "ib_core" in depends else "nvidia_peermem was built without RDMA"
    dma_buf = "the kernel is older than 5.12" if flavour == "open" else f"the driver's modules are {flavour}"
    return f"no dma-buf: {dma_buf}; {peermem}"


def _kernel(release: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return tuple(map(int, found.groups())) if found else (0,)


CHECK = Check(
    needs=(
        "rdma.devices",
        "rdma.ports",
        "modules.loaded",
        "host.kernel",
        "kernel.nvidia_flavour",
        "modules.depends.nvidia_peermem",
        "gpu.names",
    ),
    observe=observe,
    cause=cause,
    accept=OneOf(["dma-buf", "nvidia_peermem"]),
    set="loaded",
    applies=(GPU_ON_PCI, RDMA),
    remedy=module("nvidia_peermem"),
    severity="critical",
    cost="bandwidth",
)

"""GPUDirect RDMA has neither dma-buf nor nvidia_peermem.

Why it matters: For GPUDirect RDMA, the driver must give the RDMA stack access to GPU memory: through dma-buf (Linux
5.12 or newer and NVIDIA's open kernel modules) or through the nvidia_peermem module. With neither, NCCL copies
everything through host memory, at a fraction of the bandwidth and without an error. Where dma-buf works,
nvidia_peermem is not needed.
Healthy exception: A management card that can do RoCE is not meant for GPU traffic.
Does not gate: Jobs run with less bandwidth, and jobs on one node do not need it.
Confirm manually: lsmod | grep peermem; uname -r; modinfo -F license nvidia (open modules: Dual MIT/GPL)
Side effects of the fix: Load it after the RDMA drivers; a new RDMA driver package needs the NVIDIA driver rebuilt.
Sources: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/gpu_troubleshooting.html
"""

import re

from nodetune.api import GPU_ON_PCI, RDMA, Absent, Check, FactsView, OneOf, Unread, Value, manual
from nodetune.checks.rdma._ports import for_gpus

AMAZON = "1d0f"
PEERMEM = {"nvidia_peermem", "nv_peer_mem"}


def observe(facts: FactsView) -> Value | Absent | Unread:
    if all(device["vendor"] in (AMAZON, None) for device in facts["rdma.devices"].values()):
        return Absent("no RDMA hardware that uses this path")
    if not for_gpus(facts["rdma.ports"]):
        return Absent("no active RDMA port of 100 Gb/s or more")
    if PEERMEM & set(facts["modules.loaded"]):
        return Value("nvidia_peermem")
    if facts["kernel.nvidia_flavour"] != "open":
        return Value("none")
    if _kernel(facts["host.kernel"]) >= (5, 12):
        return Value("dma-buf")
    return (
        Unread("a vendor kernel: its version does not show whether dma-buf works")
        if ".el" in facts["host.kernel"]
        else Value("none")
    )


def _kernel(release: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", release)
    return tuple(map(int, found.groups())) if found else (0,)


CHECK = Check(
    needs=("rdma.devices", "rdma.ports", "modules.loaded", "host.kernel", "kernel.nvidia_flavour"),
    observe=observe,
    accept=OneOf(["dma-buf", "nvidia_peermem"]),
    applies=(GPU_ON_PCI, RDMA),
    remedy=manual(
        "modprobe nvidia_peermem and echo nvidia_peermem > /etc/modules-load.d/nvidia-peermem.conf. Alternatively, "
        "install the open kernel modules of the driver on a kernel of 5.12 or newer and reboot."
    ),
    severity="critical",
)

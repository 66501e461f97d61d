"""The kernel page size is 4 KiB.

Why it matters: NVIDIA recommends 64 KiB pages on Grace. Programs that allocate a lot of memory take fewer page faults
and fewer TLB misses. Other Arm machines (GB10, Jetson, Graviton and Ampere with GPUs) run with 4 KiB pages as shipped.
Confirm manually: getconf PAGESIZE
Side effects of the fix: Some software supports 4 KiB pages only (jemalloc, old containers). Small files take more
cache. With 64 KiB pages a transparent huge page is 512 MiB and rarely useful.
Sources: https://docs.nvidia.com/grace-perf-tuning-guide/os-settings.html
"""

from nodetune.api import GPU_ON_PCI, Check, Equals, FactAbsentError, FactsView, When, manual
from nodetune.checks.shared.gpu_cards import GRACE


def observe(facts: FactsView) -> int:
    if not any(GRACE.search(name) for name in facts["gpu.names"].values()):
        raise FactAbsentError("no Grace superchip: its kernel has the usual pages")
    size: int = facts["host.page_size"]
    return size


CHECK = Check(
    needs=("host.page_size", "gpu.names"),
    observe=observe,
    accept=Equals(65536),
    unit="bytes",
    applies=(When("host.arch", Equals("aarch64"), "only Arm kernels offer a choice of page size"), GPU_ON_PCI),
    remedy=manual(
        "Install the kernel flavour with 64 KiB pages and reboot. Ubuntu: apt install linux-nvidia-64k; "
        "RHEL: dnf install kernel-64k && grubby --set-default /boot/vmlinuz-*+64k"
    ),
    severity="medium",
    name="page size",
)

"""The kernel page size is 4 KiB.

Why it matters: NVIDIA recommends 64 KiB pages on Grace. Programs that allocate a lot of memory take fewer page faults
and fewer TLB misses.
Confirm manually: getconf PAGESIZE
Side effects of the fix: Some software supports 4 KiB pages only (jemalloc, old containers). Small files take more
cache. With 64 KiB pages a transparent huge page is 512 MiB and rarely useful.
Sources: https://docs.nvidia.com/grace-perf-tuning-guide/os-settings.html
"""

from nodetune.api import GPU_ON_PCI, Check, Equals, When, manual

CHECK = Check(
    fact="host.page_size",
    accept=Equals(65536),
    unit="bytes",
    applies=(When("host.arch", Equals("aarch64"), "only Arm kernels offer a choice of page size"), GPU_ON_PCI),
    remedy=manual(
        "Install the kernel flavour with 64 KiB pages and reboot. Ubuntu: apt install linux-nvidia-64k; "
        "RHEL: dnf install kernel-64k && grubby --set-default /boot/vmlinuz-*+64k"
    ),
    severity="medium",
)

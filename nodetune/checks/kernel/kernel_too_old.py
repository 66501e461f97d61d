"""The running kernel is too old for current GPU drivers.

Why it matters: NVIDIA's driver, the RDMA stack and container engines rely on interfaces of later kernels (cgroup v2,
dma-buf, pidfd). Current data-centre drivers are not tested on older kernels. Where an interface is missing, features
silently fall back to slow paths. A host without a GPU needs none of this.
Confirm manually: uname -r
Side effects of the fix: The fix needs a newer distribution release and a reboot.
Sources: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (supported distributions and their kernels) ;
https://docs.nvidia.com/grace-perf-tuning-guide/
"""

from __future__ import annotations

import re

from nodetune.api import Check, Empty, FactAbsentError, FactsView, FactUnreadError, manual
from nodetune.checks.shared.gpu_cards import GRACE

OLDEST, OLDEST_ON_GRACE = (4, 18), (5, 14)
"""The oldest kernels of the distributions that NVIDIA supports: RHEL 8, and RHEL 9 on Grace."""


def too_old(facts: FactsView) -> str:
    found = re.match(r"(\d+)\.(\d+)", facts["host.kernel"])
    if not found:
        raise FactUnreadError(f"a kernel release without numbers: {facts['host.kernel']}")
    if facts.readable("pci.gpus") == []:
        raise FactAbsentError("no NVIDIA GPU on the PCI bus")
    grace = any(GRACE.search(name) for name in facts.readable("gpu.names", {}).values())
    oldest = OLDEST_ON_GRACE if grace else OLDEST
    release = int(found[1]), int(found[2])
    return "" if release >= oldest else f"{facts['host.kernel']} (oldest supported: {oldest[0]}.{oldest[1]})"


CHECK = Check(
    observe=too_old,
    needs=("host.kernel", "pci.gpus", "gpu.names"),
    accept=Empty("a kernel of a supported distribution"),
    remedy=manual("Upgrade the node to a distribution release that the driver supports."),
    severity="medium",
    name="kernel",
)

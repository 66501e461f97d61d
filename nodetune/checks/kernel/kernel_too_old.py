"""The running kernel is older than any that current data-centre drivers are tested on.

Why it matters: NVIDIA's driver, the RDMA stack and container engines count on interfaces of later kernels (cgroup v2,
dma-buf, pidfd); what is missing shows as features that silently fall back to slow paths.
Confirm by hand: uname -r
Side effects of the fix: A newer distribution release, and a reboot.
Sources: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (supported distributions and their kernels) ;
https://docs.nvidia.com/grace-perf-tuning-guide/
"""

from __future__ import annotations

import re

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

OLDEST = {"x86_64": (4, 18), "aarch64": (5, 14)}
"""By architecture, the oldest kernel among the distributions that NVIDIA supports (RHEL 8; RHEL 9 on Grace)."""


def too_old(facts: View) -> str:
    found = re.match(r"(\d+)\.(\d+)", facts["host.kernel"])
    release = (int(found[1]), int(found[2])) if found else (0, 0)
    oldest = OLDEST.get(facts["host.arch"], (0, 0))
    return "" if release >= oldest else f"{facts['host.kernel']} (oldest in use: {oldest[0]}.{oldest[1]})"


CHECK = Check(
    observe=too_old,
    needs=("host.kernel", "host.arch"),
    accept=Empty("a kernel of a supported distribution"),
    remedy=manual("Move the node to a distribution release that the driver supports"),
    severity="medium",
)

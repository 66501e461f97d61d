"""The NVIDIA kernel modules are proprietary, not open.

Why it matters: NVIDIA supports the open modules on Turing and newer, and installs them by default since driver 560.
Blackwell GPUs and Grace systems work only with the open modules. RDMA directly from GPU memory through dma-buf needs
them too.
Confirm manually: cat /proc/driver/nvidia/version
Side effects of the fix: The fix needs other packages and a reboot. Settings of the proprietary modules (GSP firmware
off) have no equivalent.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, Check, Equals, FactsView, manual

WITHOUT_GSP = {"kepler", "maxwell", "pascal", "volta"}


def flavour(facts: FactsView) -> Any:
    kinds = set(facts.readable("gpu.architecture", {}).values())
    if kinds & WITHOUT_GSP:
        return Absent("GPUs older than Turing need the proprietary modules")
    return facts["kernel.nvidia_flavour"]


CHECK = Check(
    observe=flavour,
    needs=("kernel.nvidia_flavour", "gpu.architecture"),
    accept=Equals("open"),
    remedy=manual(
        "Install the open flavour of the same driver branch and reboot. Ubuntu: apt install nvidia-driver-BRANCH-open; "
        "NVIDIA's repositories: nvidia-open; RHEL: dnf module install nvidia-driver:BRANCH-open"
    ),
    severity="low",
    name="NVIDIA modules",
)

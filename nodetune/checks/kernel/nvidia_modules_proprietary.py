"""The closed NVIDIA kernel modules are loaded where the open ones belong.

Why it matters: NVIDIA supports the open modules from Turing on and installs them by default since driver 560; GPUs of
the Blackwell generation and Grace systems work with no others. RDMA straight from GPU memory through dma-buf needs
them too.
Confirm by hand: cat /proc/driver/nvidia/version
Side effects of the fix: Other packages and a reboot; settings of the closed modules (GSP firmware off) have no
counterpart.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from typing import Any

from nodetune.expect import Equals
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View

WITHOUT_GSP = {"kepler", "maxwell", "pascal", "volta"}


def flavour(facts: View) -> Any:
    kinds = set(facts.readable("gpu.architecture", {}).values())
    if kinds & WITHOUT_GSP:
        return Absent("GPUs older than Turing need the closed modules")
    return facts["kernel.nvidia_flavour"]


CHECK = Check(
    observe=flavour,
    needs=("kernel.nvidia_flavour", "gpu.architecture"),
    accept=Equals("open"),
    remedy=manual(
        "Install the open flavour of the same driver branch and reboot. Ubuntu: apt install nvidia-driver-BRANCH-open; "
        "NVIDIA's repositories: nvidia-open; RHEL: dnf module install nvidia-driver:BRANCH-open"
    ),
    severity="medium",
)

"""The module for unified memory (nvidia_uvm) is not loaded.

Why it matters: Every CUDA context needs it, and so do the memory pools that NCCL uses from 2.23 on. The first CUDA
program loads it through a set-uid helper, so that a node which has run none since boot may simply not have it yet; where
that helper cannot run (containers, hardened hosts) CUDA fails to start.
Confirm by hand: lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm
Side effects of the fix: None.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty, Not
from nodetune.model import Check, When
from nodetune.remedies import module
from nodetune.view import View


def missing(facts: View) -> str:
    return "" if "nvidia_uvm" in facts["modules.loaded"] else "not loaded"


CHECK = Check(
    observe=missing,
    needs=("modules.loaded",),
    accept=Empty("loaded"),
    set="loaded",
    applies=(GPU_ON_PCI, When("kernel.nvidia_module_version", Not(Empty()), "the NVIDIA driver is not loaded")),
    remedy=module("nvidia_uvm"),
    severity="low",
)

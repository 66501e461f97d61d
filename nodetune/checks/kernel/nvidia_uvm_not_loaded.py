"""The nvidia_uvm module is not loaded.

Why it matters: Every CUDA context needs this module for unified memory, and so do NCCL's memory pools since 2.23. The
first CUDA program loads it through a setuid helper, so a node that has run none since boot may not have it loaded yet.
Where that helper cannot run (containers, hardened hosts), CUDA fails to start.
Confirm manually: lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm
Side effects of the fix: None.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html
"""

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, Not, When, module


def missing(facts: FactsView) -> str:
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

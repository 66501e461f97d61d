"""The nouveau driver is loaded.

Why it matters: nouveau claims the GPUs before the NVIDIA driver can, and CUDA does not run on it. The NVIDIA driver
then fails to load or finds only some of the GPUs.
Confirm manually: lsmod | grep nouveau
Side effects of the fix: The node reboots. A display on nouveau uses the NVIDIA driver or the BMC afterwards.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, modprobe


def loaded(facts: FactsView) -> str:
    return "loaded" if "nouveau" in facts["modules.loaded"] else ""


CHECK = Check(
    observe=loaded,
    needs=("modules.loaded",),
    accept=Empty("not loaded"),
    set="blacklist",
    applies=(GPU_ON_PCI,),
    remedy=modprobe("nouveau"),
    severity="critical",
    stability="stable",
)

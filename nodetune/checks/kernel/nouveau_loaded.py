"""The nouveau driver is loaded on a host with NVIDIA GPUs.

Why it matters: nouveau claims the GPUs before the NVIDIA driver can, and CUDA does not run on it. The NVIDIA driver
then fails to load or sees only some of the GPUs.
Confirm by hand: lsmod | grep nouveau
Side effects of the fix: Reboot; a display that nouveau drives goes through the NVIDIA driver or the BMC afterwards.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import modprobe
from nodetune.view import View


def loaded(facts: View) -> str:
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

"""The nouveau driver drives a GPU.

Why it matters: nouveau claims the GPUs before the NVIDIA driver can, and CUDA does not run on it. The NVIDIA driver
then fails to load or finds only some of the GPUs. What counts is the driver that each GPU is bound to: nouveau may be
loaded for nothing, or drive a display card of a host whose other GPUs the NVIDIA driver has.
Healthy exception: nouveau may drive a display card of a host whose other GPUs the NVIDIA driver has, or be loaded for
nothing.
Confirm manually: lspci -nnk -d 10de: | grep -A3 -E '03(00|02)'
Side effects of the fix: The node reboots. A display on nouveau uses the NVIDIA driver or the BMC afterwards.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, modprobe

COMPUTE = "0302"
"""The PCI class of a GPU without display outputs (3D controller)."""


def claimed(facts: FactsView) -> str:
    devices = facts["pci.devices"]
    gpus = {bdf: devices[bdf] for bdf in facts["pci.gpus"] if bdf in devices}
    ours = [bdf for bdf, gpu in gpus.items() if gpu["driver"] == "nouveau"]
    others = any(gpu["driver"] not in ("nouveau", None) for gpu in gpus.values())
    if others and not any(gpus[bdf]["class"] == COMPUTE for bdf in ours):
        return ""
    return ", ".join(ours)


CHECK = Check(
    observe=claimed,
    needs=("pci.gpus", "pci.devices"),
    accept=Empty("no GPU on nouveau"),
    set="blacklist",
    applies=(GPU_ON_PCI,),
    remedy=modprobe("nouveau"),
    severity="critical",
    stability="stable",
)

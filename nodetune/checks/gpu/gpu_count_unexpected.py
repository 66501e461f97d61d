"""The number of GPUs differs from the expected number.

Why it matters: A GPU that vanished from the PCI bus leaves no trace except a lower count. By default the check expects
at least one GPU. A site file sets the number that its hosts have (accept: 8). If the platform reports the number,
gpus-fewer-than-platform compares with it.
Healthy exception: A host without an NVIDIA GPU on the PCI bus has none to count, nor has one whose GPUs are all passed
through to virtual machines.
Does not gate: Slurm itself takes out of service a node with fewer GPUs than gres.conf lists.
Confirm manually: nvidia-smi -L | wc -l
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU_ON_PCI, AtLeast, Check, Fact, FactAbsentError, FactsView, repair


def observe(facts: FactsView) -> Fact:
    devices = facts.readable("pci.devices", {})
    if not {devices.get(bdf, {}).get("driver") for bdf in facts["pci.gpus"]} & {"nvidia", None}:
        raise FactAbsentError("every GPU is bound to a driver other than NVIDIA's (passed through, or nouveau)")
    return facts.fact("gpu.count")


CHECK = Check(
    needs=("gpu.count", "pci.gpus", "pci.devices"),
    observe=observe,
    accept=AtLeast(1),
    applies=(GPU_ON_PCI,),
    remedy=repair(
        "Compare lspci -d 10de: with the number of GPUs that the machine was bought with. If a GPU is not on the bus, "
        "power the host off and on, check seating and power cables, read the BMC's event log, then open a case with "
        "the vendor. If it is on the bus and the driver does not show it, dmesg | grep NVRM says why."
    ),
    severity="critical",
    part_of="gpu-missing",
    name="GPUs",
)

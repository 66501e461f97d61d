"""A GPU that is on the PCI bus is unknown to NVML.

Why it matters: The driver has given it up: it did not initialise, or it broke off while the host ran. Jobs get fewer
GPUs than the scheduler promised, and NCCL jobs over the whole node do not start.
Confirm by hand: nvidia-smi -L; lspci -d 10de: -nn | grep -E '0300|0302'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import AtLeast, Equals
from nodetune.model import Check, Each, Unread, Value, When
from nodetune.remedies import manual
from nodetune.view import View

KNOWN = "known to NVML"


def observe(facts: View) -> dict[str, str | Unread]:
    devices = facts["pci.devices"]
    driven = {devices[bdf]["device"] for bdf in facts["pci.gpus"] if devices[bdf]["driver"] == "nvidia"}
    candidates = [
        bdf
        for bdf in facts["pci.gpus"]
        if bdf not in facts["gpu.excluded"]
        and not devices[bdf].get("virtual_function")  # a vGPU host's: the driver has them, NVML does not count them
        and (
            devices[bdf]["driver"] == "nvidia" or (devices[bdf]["driver"] is None and devices[bdf]["device"] in driven)
        )
    ]
    return {bdf: _seen(facts, bdf) for bdf in candidates}


def _seen(facts: View, bdf: str) -> str | Unread:
    fact = facts.fact("gpu.bdf")
    told = list(fact.of.values()) if isinstance(fact, Each) else [fact]
    if any(isinstance(one, Value) and one.value == bdf for one in told):
        return KNOWN
    if bdf in facts["gpu.hidden"]:
        return Unread("a device cgroup keeps it from this process: ask from outside the job or container")
    if any(isinstance(one, Unread) for one in told):
        return Unread("a GPU does not tell its address: see gpu-lost")
    return "unknown to NVML" if facts["pci.devices"][bdf]["driver"] else "no driver has it"


CHECK = Check(
    needs=("pci.gpus", "pci.devices", "gpu.bdf", "gpu.excluded", "gpu.hidden"),
    observe=observe,
    accept=Equals(KNOWN),
    applies=(GPU_ON_PCI, NOT_CONTAINER, When("gpu.count", AtLeast(0), "no NVML library on this host")),
    remedy=manual(
        "Take the node out of service. Read dmesg | grep -iE 'nvrm|xid' for the reason (RmInitAdapter failed, fallen off the "
        "bus). Power the host off and on (a reboot may not be enough), then check seating and power of the GPU; when it comes "
        "back missing, open a case with the vendor and attach the output of nvidia-bug-report.sh."
    ),
    severity="critical",
    stability="stable",
)

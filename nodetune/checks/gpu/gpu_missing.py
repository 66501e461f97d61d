"""A GPU on the PCI bus is not visible to NVML.

Why it matters: The driver has given up the GPU: it did not initialise, or it failed while the host was running. Jobs
get fewer GPUs than the scheduler promised, and NCCL jobs that use the whole node do not start.
Healthy exception: A GPU may be passed through to a virtual machine, be excluded from the driver on purpose, be a
virtual function of a vGPU host, or be of another model than those that the driver has: gpu-unsupported and
gpu-driver-refuses-work report it if the driver refused it.
Confirm manually: nvidia-smi -L; lspci -d 10de: -nn | grep -E '0300|0302'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, AtLeast, Check, Each, Equals, FactsView, Unread, Value, When, repair

VISIBLE = "visible to NVML"


def observe(facts: FactsView) -> dict[str, str | Unread]:
    devices = facts["pci.devices"]
    gpus = [bdf for bdf in facts["pci.gpus"] if bdf in devices]
    driven = {devices[bdf]["device"] for bdf in gpus if devices[bdf]["driver"] == "nvidia"}
    excluded = set(facts["gpu.excluded"])
    candidates = [
        bdf
        for bdf in gpus
        if bdf not in excluded
        and not devices[bdf].get("virtual_function")  # on a vGPU host: NVML does not count them
        and (
            devices[bdf]["driver"] == "nvidia" or (devices[bdf]["driver"] is None and devices[bdf]["device"] in driven)
        )
    ]
    fact = facts.fact("gpu.bdf")
    addresses = list(fact.of.values()) if isinstance(fact, Each) else [fact]
    visible = {one.value for one in addresses if isinstance(one, Value)}
    missing = {bdf for bdf in candidates if bdf not in visible}
    unsure = any(isinstance(one, Unread) for one in addresses)
    return {bdf: _invisible(facts, bdf, unsure) if bdf in missing else VISIBLE for bdf in candidates}


def _invisible(facts: FactsView, bdf: str, unsure: bool) -> str | Unread:
    if bdf in facts["gpu.hidden"]:
        return Unread("a device cgroup hides it from this process: audit from outside the job or container")
    if unsure:
        return Unread("a GPU does not report its address: see gpu-lost")
    return "not visible to NVML" if facts["pci.devices"][bdf]["driver"] else "no driver is bound"


CHECK = Check(
    needs=("pci.gpus", "pci.devices", "gpu.bdf", "gpu.excluded", "gpu.hidden"),
    observe=observe,
    accept=Equals(VISIBLE),
    applies=(GPU_ON_PCI, NOT_CONTAINER, When("gpu.count", AtLeast(0), "no NVML library on this host")),
    remedy=repair(
        "Take the node out of service. Read dmesg | grep -iE 'nvrm|xid' for the reason (RmInitAdapter failed, fallen "
        "off the bus). Power the host off and on (a reboot may not be enough), then check seating and power of the "
        "GPU. If it is still missing, open a case with the vendor and attach the output of nvidia-bug-report.sh."
    ),
    severity="critical",
    stability="stable",
)

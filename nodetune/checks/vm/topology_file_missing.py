"""NCCL has no topology file for this virtual machine.

Why it matters: Where the hypervisor shows every device directly on the root bus, NCCL sees no PCIe switches. It pairs
GPUs and NICs at random and leaves GPUDirect RDMA off between them. Providers ship a topology file for each machine size
(Azure: /opt/microsoft/*/topo.xml). A file for another size is worse than none: it silently halves the bandwidth.
On AWS the plugin for EFA sets the file of the machine type by itself, where the type needs one.
Confirm manually: lspci -t; grep -r NCCL_TOPO_FILE /etc/nccl.conf /etc/environment; ls /var/run/nvidia-topologyd
Side effects of the fix: None, if the file belongs to this machine size.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_TOPO_FILE) ;
https://github.com/Azure/azhpc-images ; https://github.com/aws/aws-ofi-nccl (platform-aws.cpp)
"""

from __future__ import annotations

from nodetune.api import RDMA, VIRTUAL, Absent, Check, Equals, FactsView, Matches, When, manual

FROM_DRIVER = "file./var/run/nvidia-topologyd/virtualTopology.xml"
PROVIDERS = "^(Microsoft|Google)"
GIVEN, NOT_GIVEN = "a topology file", "no topology file"


def observe(facts: FactsView) -> str | Absent:
    devices = facts["pci.devices"]
    gpus = [gpu for gpu in facts["pci.gpus"] if gpu in devices]
    if len(gpus) < 2:
        return Absent("fewer than two GPUs")
    if len({tuple(devices[gpu]["parents"]) for gpu in gpus}) > 1:
        return Absent("the PCIe switches are visible")
    named = any(each["name"] == "NCCL_TOPO_FILE" and each["value"] for each in facts["nccl.settings"])
    return GIVEN if named or facts.get(FROM_DRIVER) else NOT_GIVEN


CHECK = Check(
    needs=("pci.devices", "pci.gpus", "nccl.settings", FROM_DRIVER),
    observe=observe,
    accept=Equals(GIVEN),
    applies=(
        VIRTUAL,
        RDMA,
        When("host.dmi.sys_vendor", Matches(PROVIDERS), "this provider is not one that ships topology files"),
    ),
    remedy=manual(
        "Use the provider's HPC or GPU image, or set its topology file for exactly this machine size in /etc/nccl.conf: "
        "NCCL_TOPO_FILE=/path/topo.xml. All users must be able to read it."
    ),
    severity="medium",
    name="NCCL topology",
)

"""The aws-ofi-nccl plugin for EFA is not installed.

Why it matters: NCCL reaches EFA only through aws-ofi-nccl. Without it, NCCL falls back to TCP sockets without an error.
Containers may bring their own plugin, so Kubernetes nodes are not checked.
Confirm manually: ls /opt/amazon/ofi-nccl/lib*/; NCCL_DEBUG=INFO all_reduce_perf 2>&1 | grep NET/
Side effects of the fix: None for running jobs.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html ; https://github.com/aws/aws-ofi-nccl
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, VIRTUAL, Absent, Check, Equals, FactsView, When, manual


def observe(facts: FactsView) -> str | Absent:
    if not any(each["driver"] == "efa" for each in facts["pci.devices"].values()):
        return Absent("no EFA device with a driver")
    return "installed" if facts["rdma.net_plugins"]["aws_ofi"] else "not installed"


CHECK = Check(
    needs=("pci.devices", "rdma.net_plugins"),
    observe=observe,
    accept=Equals("installed"),
    applies=(
        VIRTUAL,
        GPU_ON_PCI,
        When("kubernetes.present", Equals(wanted=False), "a Kubernetes node: containers bring their own plugin"),
    ),
    remedy=manual(
        "Run the EFA installer of AWS, which includes aws-ofi-nccl. Set NCCL_NET=AWS Libfabric so that a missing plugin is an error."
    ),
    severity="medium",
    name="EFA plugin",
)

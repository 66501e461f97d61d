"""AWS Elastic Fabric Adapters are there, but NCCL's plugin for them is not.

Why it matters: NCCL reaches EFA only through aws-ofi-nccl. Without it, NCCL falls back to TCP sockets without an error.
Containers may bring their own plugin; Kubernetes nodes are therefore not judged.
Confirm by hand: ls /opt/amazon/ofi-nccl/lib*/; NCCL_DEBUG=INFO all_reduce_perf 2>&1 | grep NET/
Side effects of the fix: None for running jobs.
Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html ; https://github.com/aws/aws-ofi-nccl
"""

from nodetune.conditions import GPU_ON_PCI, VIRTUAL
from nodetune.expect import Equals
from nodetune.model import Absent, Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str | Absent:
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
        "Run the EFA installer of AWS, which brings aws-ofi-nccl; set NCCL_NET=AWS Libfabric so that its absence is an error."
    ),
    severity="medium",
)

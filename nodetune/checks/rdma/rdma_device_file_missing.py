"""Programs cannot open an RDMA device: its file is missing.

Why it matters: Libraries open /dev/infiniband/uverbsN. Without it, NCCL and libfabric do not see the adapter, and use fewer
adapters or plain TCP without an error.
Confirm manually: ls -l /dev/infiniband; grep . /sys/class/infiniband_verbs/uverbs*/ibdev; ibv_devices
Side effects of the fix: None for running jobs.
Sources: https://docs.kernel.org/infiniband/user_verbs.html ; https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
"""

from nodetune.api import NOT_CONTAINER, RDMA, Check, Empty, FactsView, manual
from nodetune.checks.shared.rdma_ports import for_gpus


def observe(facts: FactsView) -> dict[str, str]:
    """Judge EFA and the ports for GPU traffic: management cards may do without."""
    devices = facts["rdma.devices"]
    efa = {name for name, device in devices.items() if device["driver"] == "efa"}
    wanted = efa | {port.rpartition("/")[0] for port in for_gpus(facts["rdma.ports"])}
    return {name: "" if name in facts["rdma.device_files"] else "no file" for name in sorted(wanted & devices.keys())}


CHECK = Check(
    needs=("rdma.devices", "rdma.ports", "rdma.device_files"),
    observe=observe,
    accept=Empty("a file in /dev/infiniband"),
    applies=(NOT_CONTAINER, RDMA),
    remedy=manual(
        "modprobe ib_uverbs; udevadm trigger --subsystem-match=infiniband_verbs. If the module is not found, install rdma-core and the "
        "kernel's package of extra modules, or run the installer of the driver (EFA, DOCA-OFED) again."
    ),
    severity="medium",
    cost="bandwidth",
)

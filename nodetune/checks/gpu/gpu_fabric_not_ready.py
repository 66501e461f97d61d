"""A GPU is not registered with its NVLink fabric.

Why it matters: On NVSwitch systems from Hopper on, CUDA does not start before the fabric is ready, and programs end
with error 802 (system not yet initialized). The usual cause is a Fabric Manager that is not running or whose version
differs from the driver's.
Healthy exception: For some minutes after a boot, Fabric Manager may still be registering the GPUs. A host whose Fabric
Manager gives GPUs to virtual machines (FABRIC_MODE=1 or 2) registers a GPU when a partition with it is activated.
Does not gate: One reading cannot distinguish a stuck fabric from GPUs that were reset a moment ago, as some sites
do after each job. A status other than success is also seen on machines that work.
Confirm manually: nvidia-smi -q | grep -A3 '    Fabric'
Side effects of the fix: Starting Fabric Manager does not disturb a node whose GPUs cannot be used anyway.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html ;
https://github.com/aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop/issues/33 ;
https://github.com/meta-pytorch/torchcomms/pull/936 (another status on machines that work) ;
https://github.com/NVIDIA/gpu-driver-container/pull/909 (FABRIC_MODE=1: In Progress until a partition uses the GPU)
"""

from __future__ import annotations

from nodetune.api import GPU, Absent, Check, Equals, Fact, FactsView, Unread, repair
from nodetune.checks.gpu import _fabric
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.fabric", lambda fabric: _state(fabric, _fabric.booting(facts), _fabric.shared(facts)))


def _state(fabric: dict[str, str], booting: bool, shared: bool) -> str | Unread | Absent:
    if fabric["state"] in ("in_progress", "not_started") and shared:
        return _fabric.GIVEN_AWAY
    if fabric["state"] == "in_progress" and booting:
        return Unread("the host has just booted, and the driver is registering the GPU: audit again in a few minutes")
    if fabric["state"] == "not_started":
        return Unread("the driver has not started to register the GPU: it is unclear whether this board needs a fabric")
    return f"{fabric['state']}, {fabric['status'].lower()}"


CHECK = Check(
    needs=("gpu.fabric", _fabric.UPTIME, _fabric.MODE),
    observe=observe,
    accept=Equals("completed, success"),
    applies=(GPU,),
    remedy=repair(
        "systemctl status nvidia-fabricmanager: its version must match the driver's (nv-fabricmanager --version). "
        "Start it and read /var/log/fabricmanager.log. On multi-node NVLink systems, check the switch side. In a "
        "virtual machine, the host must activate the partition."
    ),
    severity="critical",
    name="NVLink fabric",
)

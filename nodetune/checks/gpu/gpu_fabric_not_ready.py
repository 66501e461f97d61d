"""A GPU is not registered with its NVLink fabric.

Why it matters: On NVSwitch systems from Hopper on, CUDA does not start before the fabric is ready, and programs end
with error 802 (system not yet initialized). The usual cause is a Fabric Manager that is not running or whose version
differs from the driver's.
Confirm manually: nvidia-smi -q | grep -A3 '    Fabric'
Side effects of the fix: Starting Fabric Manager does not disturb a node whose GPUs cannot be used anyway.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html ;
https://github.com/aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop/issues/33
"""

from nodetune.api import GPU, Check, Equals, Fact, FactsView, Unread, manual
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.fabric", _state)


def _state(fabric: dict[str, str]) -> str | Unread:
    if fabric["state"] == "not_started":
        return Unread("the driver has not started to register the GPU: it is unclear whether this board needs a fabric")
    return f"{fabric['state']}, {fabric['status']}"


CHECK = Check(
    needs=("gpu.fabric",),
    observe=observe,
    accept=Equals("completed, success"),
    applies=(GPU,),
    remedy=manual(
        "systemctl status nvidia-fabricmanager: its version must match the driver's (nv-fabricmanager --version). "
        "Start it and read /var/log/fabricmanager.log. On multi-node NVLink systems, check the switch side. In a "
        "virtual machine, the host must activate the partition."
    ),
    severity="critical",
)

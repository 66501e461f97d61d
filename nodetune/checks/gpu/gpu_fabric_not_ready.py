"""A GPU is not registered with its NVLink fabric.

Why it matters: On NVSwitch systems from Hopper on CUDA does not start before the fabric is ready: programs end with
error 802 (system not yet initialized). Usual causes are a Fabric Manager that is not running or of another version
than the driver.
Confirm by hand: nvidia-smi -q | grep -A3 '    Fabric'
Side effects of the fix: Starting Fabric Manager does not disturb a node whose GPUs cannot be used anyway.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html ;
https://github.com/aws-samples/aws-deep-learning-ami-ubuntu-dcv-desktop/issues/33
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Fact, Unread
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Fact:
    return each(facts, "gpu.fabric", _state)


def _state(fabric: dict[str, str]) -> str | Unread:
    if fabric["state"] == "not_started":
        return Unread("the driver has not begun to register it: whether this board needs a fabric is not known")
    return f"{fabric['state']}, {fabric['status']}"


CHECK = Check(
    needs=("gpu.fabric",),
    observe=observe,
    accept=Equals("completed, success"),
    applies=(GPU,),
    remedy=manual(
        "systemctl status nvidia-fabricmanager: its version must be that of the driver (nv-fabricmanager --version). Start it "
        "and read /var/log/fabricmanager.log. On multi-node NVLink systems ask the switch side. In a virtual machine the host "
        "must activate the partition."
    ),
    severity="critical",
)

"""The driver says that a GPU must be reset, or the node rebooted, before it is used again.

Why it matters: After a fault the driver keeps the step that brings the GPU back. Until it is taken new programs fail
on the GPU, or disturb others over NVLink.
Confirm by hand: nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: The step itself ends the programs on the GPU or on the node.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.recovery_action",
    accept=Equals("none"),
    applies=(GPU,),
    remedy=manual(
        "Drain the node, then take the step that is named: nvidia-smi -r -i INDEX for a reset (all GPUs together on NVSwitch "
        "systems before Hopper), a reboot, or on a multi-node NVLink system the recovery of the IMEX domain. Then audit again."
    ),
    severity="critical",
    stability="stable",
)

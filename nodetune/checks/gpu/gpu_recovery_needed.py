"""A GPU needs a reset or a node reboot before further use.

Why it matters: After a fault, the driver reports the action that recovers the GPU. Until it is taken, new programs
fail on the GPU or disturb others over NVLink. If the action is to drain and reset, new work may run until then: see
gpu-reset-due.
Confirm manually: nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: The action itself ends the programs on the GPU or on the node.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.api import GPU, Check, OneOf, manual

CHECK = Check(
    fact="gpu.recovery_action",
    accept=OneOf(["none", "drain and reset the GPU"]),
    applies=(GPU,),
    remedy=manual(
        "Drain the node, then take the reported action: nvidia-smi -r -i INDEX for a reset (all GPUs together on "
        "NVSwitch systems before Hopper), a reboot, or on a multi-node NVLink system the recovery of the IMEX domain. "
        "Then audit again."
    ),
    severity="critical",
    stability="stable",
)

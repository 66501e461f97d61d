"""A GPU needs a reset or a node reboot before further use.

Why it matters: After a fault, the driver reports the action that recovers the GPU. Until it is taken, new programs
fail on the GPU or disturb others over NVLink. "reset the GPU" (such as after an uncontained memory error): end all
programs on it, then reset it. "reboot the node": nothing on the node can use the GPU before. "drain peer-to-peer
traffic": end all programs that reach other GPUs, then read the action again. "drain and reset the GPU" (a contained
memory error): a part of the GPU is out of use until a reset. The programs on it may end first, and no new work should
start. It counts here once no program computes on that GPU, before Hopper on any GPU of the node, and until then as
gpu-reset-due.
Healthy exception: A GPU that must be drained and reset may be used until the programs on it have ended, before Hopper
those on the node.
Confirm manually: nvidia-smi -q | grep -i 'recovery action'; nvidia-smi --query-compute-apps=gpu_bus_id,pid --format=csv
Side effects of the fix: The action itself ends the programs on the GPU or on the node.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html (GPU Recovery Action) ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.api import GPU, Check, OneOf, repair
from nodetune.checks.gpu import _recovery

CHECK = Check(
    needs=_recovery.NEEDS,
    observe=_recovery.observe,
    accept=OneOf(["none", _recovery.DUE]),
    applies=(GPU,),
    remedy=repair(
        "Drain the node, then take the reported action: nvidia-smi -r -i INDEX for a reset (all GPUs together on "
        "NVSwitch systems before Hopper), a reboot, or on a multi-node NVLink system the recovery of the IMEX domain. "
        "Then audit again."
    ),
    severity="critical",
    stability="stable",
)

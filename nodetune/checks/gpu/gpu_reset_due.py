"""A GPU must be drained and reset at the next idle moment.

Why it matters: The driver contained a fault: part of the GPU is out of use until a reset, and the rest works. The
action means: let the programs on the GPU end, start no new work there, then reset it. Once no program computes on a GPU
of the node, gpu-recovery-needed reports it and keeps jobs away.
Confirm manually: nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html (GPU Recovery Action) ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from nodetune.api import GPU, Check, Equals, Not, manual
from nodetune.checks.gpu import _recovery

CHECK = Check(
    needs=_recovery.NEEDS,
    observe=_recovery.observe,
    accept=Not(Equals(_recovery.DUE)),
    applies=(GPU,),
    remedy=manual(
        "When the GPU is idle: drain the node and reset the GPU (nvidia-smi -r -i INDEX; all GPUs together on NVSwitch "
        "systems before Hopper), or reboot."
    ),
    severity="medium",
    cost="hardware",
)

"""A GPU is to be drained and reset at the next idle moment.

Why it matters: The driver contained a fault: part of the GPU is out of use until a reset, and the rest works. New work
may run. The action means: let the work on the GPU end, start no more there, then reset it.
Confirm manually: nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.api import GPU, Check, Equals, Not, manual

CHECK = Check(
    fact="gpu.recovery_action",
    accept=Not(Equals("drain and reset the GPU")),
    applies=(GPU,),
    remedy=manual(
        "When the node is idle: drain it and reset the GPU (nvidia-smi -r -i INDEX; all GPUs together on NVSwitch "
        "systems before Hopper), or reboot."
    ),
    severity="medium",
)

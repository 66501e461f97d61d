"""The GPUs run in confidential computing mode.

Why it matters: In this mode, every copy between host and GPU is encrypted and goes through a bounce buffer, and pinned host
memory is not used directly: copies are slower, and work that streams data loses most. Computing on the GPU itself hardly
changes. It is right where a tenant asked for it; a machine that left such a tenant should not have it.
Confirm manually: nvidia-smi conf-compute -f
Side effects of the fix: GPUs are reset. Data that tenants sent because the mode was on must not be on the machine any more.
Sources: https://docs.nvidia.com/confidential-computing/release-notes/r550-trd1 ;
https://arxiv.org/abs/2409.03992 (overhead of the mode on Hopper)
"""

from nodetune.api import GPU, Check, FactsView, Not, manual
from nodetune.api.predicates import Equals


def observe(facts: FactsView) -> str:
    return str(facts["gpu.conf_compute"]["feature"])


CHECK = Check(
    needs=("gpu.conf_compute",),
    observe=observe,
    accept=Not(Equals("enabled")),
    applies=(GPU,),
    remedy=manual(
        "If nobody needs it: with no work on the node, python3 nvidia_gpu_tools.py --set-cc-mode=off --reset-after-cc-mode-switch "
        "--gpu-bdf=BDF (github.com/NVIDIA/gpu-admin-tools) on the host that owns the GPU."
    ),
    severity="info",
)

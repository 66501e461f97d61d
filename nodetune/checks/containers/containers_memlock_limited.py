"""Containers of a kubelet get a memlock limit that is too low for RDMA.

Why it matters: A container inherits the limit of containerd or CRI-O. A pod with the capability IPC_LOCK does not need it, and
most pods with RDMA have that. One without it fails at NCCL's first RDMA buffer (ibv_reg_mr failed) or falls back to TCP.
Confirm manually: grep locked /proc/$(pidof -s containerd crio)/limits
Side effects of the fix: containerd or CRI-O restarts; containers go on. New containers may lock all memory.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://man7.org/linux/man-pages/man7/capabilities.7.html (CAP_IPC_LOCK)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import KUBELET, RDMA, Check, Equals, Fact, FactsView, limit
from nodetune.checks.shared.limit_sides import RAISED_BY_ITSELF, cause, limits_for


def observe(facts: FactsView) -> Fact | dict[str, Any]:
    return limits_for(facts, "memlock", subjects=RAISED_BY_ITSELF)


CHECK = Check(
    needs=("limits.memlock",),
    observe=observe,
    cause=cause("memlock"),
    accept=Equals("unlimited"),
    set="unlimited",
    applies=(KUBELET, RDMA),
    unit="bytes",
    remedy=limit("memlock"),
    severity="info",
    part_of="memlock-limited",
)

"""An NCCL setting can corrupt data or hang a job.

Why it matters: Skipping the flush after a GPUDirect receive, or forcing the LL128 protocol on hardware that does not
support it, can corrupt data without any error. An infinite InfiniBand timeout turns a dead link into a job that hangs
forever. Ignoring disabled peer-to-peer access hides a broken node.
Healthy exception: Ruling LL128 out and a finite timeout are safe. A host without the path (RDMA ports, the EFA plugin, GPUs
before Hopper for the flush) loses nothing.
Confirm manually: grep -rnE "FLUSH_DISABLE|NCCL_PROTO|NCCL_IB_TIMEOUT|NCCL_IGNORE_DISABLED_P2P" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: A node that ran only because of the setting may fail at start-up, where its fault becomes
visible. To exclude a protocol, write it with a leading ^ (NCCL_PROTO=^LL128) instead of forcing one.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-proto ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-timeout ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._effects import unsafe
from nodetune.checks.nccl._paths import NEEDS, paths


def unsafe_settings(facts: FactsView) -> Any:
    return unsafe(facts["nccl.settings"], paths(facts)) or []


CHECK = Check(
    needs=("nccl.settings", *NEEDS),
    observe=unsafe_settings,
    accept=Empty("no setting that risks data or hangs"),
    set="removed",
    remedy=nccl_conf(),
    severity="high",
    name="nccl.conf",
)

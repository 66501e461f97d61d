"""A setting can give wrong data or hang a job.

Why it matters: Skipping the flush after a GPUDirect receive, or forcing the LL128 protocol where the hardware does not
support it, can corrupt data without any error. An infinite InfiniBand timeout turns a dead link into a job that hangs
for ever; ignoring disabled peer-to-peer access hides a broken node.
Confirm by hand: grep -rnE "FLUSH_DISABLE|NCCL_PROTO|NCCL_IB_TIMEOUT|NCCL_IGNORE_DISABLED_P2P" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: A node that was kept running by the setting may fail at start-up, which is where its fault
belongs.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-proto ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-timeout ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import View


def unsafe_settings(facts: View) -> Any:
    return effects.unsafe(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=unsafe_settings,
    accept=Empty("no setting that risks data or hangs"),
    remedy=manual(
        "Delete the line named; rule a protocol out with a leading ^ (NCCL_PROTO=^LL128) rather than forcing one."
    ),
    severity="high",
)

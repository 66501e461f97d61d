"""NCCL debugging is on for the whole node.

Why it matters: INFO and TRACE write many lines for each rank at start-up. On a large job this floods the output and
slows the start. Every process overwrites a debug file without %h and %p in its name. Argument checks add latency to
each call.
Confirm manually: grep -rnE "NCCL_DEBUG|LOG_LEVEL|NCCL_CHECK" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: The messages are missing at the next incident. Set them for a single job when needed,
or set the proposed lower value.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug-file
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._effects import noisy


def debugging_left_on(facts: FactsView) -> Any:
    return noisy(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=debugging_left_on,
    accept=Empty("NCCL_DEBUG=WARN at most"),
    set="removed",
    remedy=nccl_conf(),
    severity="medium",
    name="nccl.conf",
)

"""NCCL debugging was left on for the whole node.

Why it matters: INFO and TRACE write many lines for each rank at start-up; on a large job that floods the output and
slows the start. A debug file without %h and %p in its name is overwritten by every process. Argument checks add
latency to each call.
Confirm by hand: grep -rnE "NCCL_DEBUG|LOG_LEVEL|NCCL_CHECK" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: The messages are missing at the next incident: whoever needs them sets them for one job.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-debug-file
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import View


def debugging_left_on(facts: View) -> Any:
    return effects.noisy(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=debugging_left_on,
    accept=Empty("NCCL_DEBUG=WARN at most"),
    remedy=manual(
        "In the file and line named, lower the value as proposed or delete the line; set it for single jobs instead."
    ),
    severity="medium",
)

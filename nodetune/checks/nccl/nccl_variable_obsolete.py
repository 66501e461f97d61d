"""A deprecated or superfluous NCCL setting is in use.

Why it matters: A deprecated name still works and may vanish with any release; with its successor beside it, the more
restrictive of both counts. Some are superfluous: the SHARP plugin sets SHARP_COLL_LOCK_ON_COMM_INIT and
SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD by itself.
Confirm by hand: grep -rnE "NCHANNELS|NRINGS|SHARP_COLL_" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None, if the successor is set to the same value.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/Mellanox/nccl-rdma-sharp-plugins (src/sharp_plugin.c) ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import names
from nodetune.remedies import manual
from nodetune.view import View


def obsolete_settings(facts: View) -> Any:
    return names.obsolete(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=obsolete_settings,
    accept=Empty("names that are neither deprecated nor superfluous"),
    remedy=manual("Replace the name by its successor where one is given; delete the line otherwise."),
    severity="info",
)

"""A deprecated or superfluous NCCL variable is set.

Why it matters: A deprecated name still works and may disappear in any release. If its successor is set as well, the
more restrictive of both counts. Some names are superfluous: the SHARP plugin sets SHARP_COLL_LOCK_ON_COMM_INIT and
SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD by itself.
Confirm manually: grep -rnE "NCHANNELS|NRINGS|SHARP_COLL_" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None, if the successor is set to the same value.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/Mellanox/nccl-rdma-sharp-plugins (src/sharp_plugin.c) ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._names import obsolete


def obsolete_settings(facts: FactsView) -> Any:
    return obsolete(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings",),
    observe=obsolete_settings,
    accept=Empty("names that are neither deprecated nor superfluous"),
    remedy=manual("Replace the name with its successor if one is given. Otherwise delete the line."),
    severity="info",
)

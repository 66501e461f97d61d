"""A deprecated or superfluous NCCL variable is set.

Why it matters: A deprecated name still works and may disappear in any release. If its successor is set as well, the
more restrictive of both counts. Some names are superfluous: the SHARP plugin sets SHARP_COLL_LOCK_ON_COMM_INIT and
SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD by itself.
Confirm manually: grep -rnE "NCHANNELS|NRINGS|SHARP_COLL_" /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None: apply removes what a plugin sets by itself, and what sets the default. A successor of other values is
for a person: those of NCCL force its tuning, and which PyTorch a job brings decides which name it reads.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ;
https://github.com/Mellanox/nccl-rdma-sharp-plugins (src/sharp_plugin.c) ; https://github.com/aws/aws-ofi-nccl
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl._names import obsolete
from nodetune.checks.shared.nccl_reading import is_at
from nodetune.checks.shared.nccl_settings import Setting, problems
from nodetune.checks.shared.nccl_table import About


def obsolete_settings(facts: FactsView) -> Any:
    return obsolete(facts["nccl.settings"]) or []


def left_alone(facts: FactsView) -> dict[str, str]:
    def judge(setting: Setting, about: About) -> str:
        same = about["kind"] == "superfluous" or is_at(setting["value"], about.get("default", []))
        return "" if same else "its value would be lost, and a successor would force it"

    return problems(facts["nccl.settings"], judge)


CHECK = Check(
    needs=("nccl.settings",),
    observe=obsolete_settings,
    accept=Empty("names that are neither deprecated nor superfluous"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(steps="Replace the name with its successor if one is given. Otherwise delete the line."),
    severity="info",
)

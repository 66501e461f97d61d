"""The RoCE address index is fixed although NCCL finds it by itself.

Why it matters: Since 2.21 NCCL picks the GID by family, range and RoCE version. Before, the default was 0 and RoCE v2
users had to write 3, which guides and scripts (NVIDIA's doRoCE.sh too) still do. Index 3 is a habit, not a rule: after
a change of address or VLAN it names another entry, or an empty one, and connections fail.
Confirm by hand: show_gids; grep -rn NCCL_IB_GID_INDEX /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None with NCCL 2.21 and newer, if a RoCE v2 entry with an IPv4 address exists. Containers with
an older NCCL on RoCE still need it: set it there.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-gid-index ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/connect.cc)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import judging, reading, releases
from nodetune.remedies import manual
from nodetune.view import View

CHOOSES_SINCE = (2, 21)


def fixed_indexes(facts: View) -> Any:
    version = releases.newest(facts.readable("nccl.libraries", []))
    if version and releases.release(version) < CHOOSES_SINCE:
        return []

    def judge(setting: Any, _: Any) -> str:
        fixed = setting["name"] == "NCCL_IB_GID_INDEX" and reading.number(setting["value"])[0] >= 0
        return f"{setting['value']} is fixed: NCCL {version or '2.21 and newer'} chooses by itself" if fixed else ""

    return judging.problems(facts["nccl.settings"], judge) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=fixed_indexes,
    accept=Empty("NCCL_IB_GID_INDEX not set"),
    remedy=manual(
        "Delete the line named. Where several RoCE v2 addresses exist, choose among them by NCCL_IB_ADDR_RANGE (CIDR) "
        "instead of by index."
    ),
    severity="medium",
)

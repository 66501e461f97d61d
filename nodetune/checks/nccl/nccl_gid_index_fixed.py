"""NCCL_IB_GID_INDEX is fixed.

Why it matters: Since 2.21, NCCL selects the GID by family, range and RoCE version. Before, the default was 0, and RoCE
v2 users had to set 3. Guides and scripts (including NVIDIA's doRoCE.sh) still do. Index 3 is a convention, not a rule:
after a change of address or VLAN it refers to another entry, or to an empty one, and connections fail.
nccl-gid-index-wrong reports an index that does not work now.
Confirm manually: show_gids; grep -rn NCCL_IB_GID_INDEX /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None with NCCL 2.21 and newer, if a RoCE v2 entry with an IPv4 address exists. Containers with
an older NCCL on RoCE still need the setting: set it in the container.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-gid-index ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/connect.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.nccl_reading import number
from nodetune.checks.shared.nccl_settings import problems
from nodetune.checks.shared.nccl_table import newest, release

CHOOSES_SINCE = (2, 21)


def fixed_indexes(facts: FactsView) -> Any:
    version = newest(facts.readable("nccl.libraries", []))
    if version and release(version) < CHOOSES_SINCE:
        return []

    def judge(setting: Any, _: Any) -> str:
        fixed = setting["name"] == "NCCL_IB_GID_INDEX" and number(setting["value"])[0] >= 0
        return (
            f"{setting['value']} is fixed: NCCL {version or '2.21 and newer'} selects it automatically" if fixed else ""
        )

    return problems(facts["nccl.settings"], judge) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries"),
    observe=fixed_indexes,
    accept=Empty("NCCL_IB_GID_INDEX not set"),
    remedy=manual(
        "Delete the named line. If several RoCE v2 addresses exist, select one with NCCL_IB_ADDR_RANGE (CIDR) "
        "instead of an index."
    ),
    severity="info",
    part_of="nccl-gid-index-wrong",
)

"""NCCL_IB_GID_INDEX is fixed.

Why it matters: Since 2.21, NCCL selects the GID by family, range and RoCE version. Before, the default was 0, and RoCE
v2 users had to set 3. Guides and scripts (including NVIDIA's doRoCE.sh) still do. Index 3 is a convention, not a rule:
after a change of address or VLAN it refers to another entry, or to an empty one, and connections fail.
nccl-gid-index-wrong reports an index that does not work now.
Confirm manually: show_gids; grep -rn NCCL_IB_GID_INDEX /etc/nccl.conf /etc/environment /etc/profile.d
Side effects of the fix: None: apply removes the line where NCCL is 2.21 or newer and the index is that of the only RoCE v2 GID
with an IPv4 address of each port, and no container engine is on the host: containers with an older NCCL still need the setting.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-gid-index ;
https://github.com/NVIDIA/nccl (src/transport/net_ib/connect.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, nccl_conf
from nodetune.checks.nccl.nccl_gid_index_wrong import CHOOSES_SINCE, choices
from nodetune.checks.shared.nccl_reading import number
from nodetune.checks.shared.nccl_settings import of_containers, problems
from nodetune.checks.shared.nccl_table import newest, release


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


def left_alone(facts: FactsView) -> dict[str, str]:
    engines, found = of_containers(facts), choices(facts)

    def judge(setting: Any, _: Any) -> str:
        same = found and all(indexes == [number(setting["value"])[0]] for indexes in found)
        return engines if same else "NCCL may select another GID, or none"

    return problems(facts["nccl.settings"], judge)


CHECK = Check(
    needs=("nccl.settings", "nccl.libraries", "rdma.ports", "rdma.gids", "kubernetes.present", "containers.engines"),
    observe=fixed_indexes,
    accept=Empty("NCCL_IB_GID_INDEX not set"),
    set="removed",
    left_alone=left_alone,
    remedy=nccl_conf(
        steps="Delete the named line. If several RoCE v2 addresses exist, select one with NCCL_IB_ADDR_RANGE (CIDR) "
        "instead of an index."
    ),
    severity="info",
    part_of="nccl-gid-index-wrong",
)

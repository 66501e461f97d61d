"""RoCE has flow control for a priority, and its traffic has another.

Why it matters: Priority flow control (PFC) protects only packets of its priorities. Without a traffic class, cards send
with DSCP 0, so in priority 0: the switch drops these packets under load, although host and switch are set up for a lossless
network. The check counts since the driver was loaded: less than 1 % of the packets that RDMA sent were in a priority with
PFC. Traffic from before a change of the settings counts too.
Confirm manually: ethtool -S LINK | grep -E 'tx_prio[0-7]_packets|tx_vport_rdma_unicast_packets'; dcb pfc show dev LINK
Side effects of the fix: None for running jobs: new connections use the class.
Sources: https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html ;
https://github.com/NVIDIA/doroce-linux ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ib-tc
"""

from __future__ import annotations

from collections.abc import Mapping

from nodetune.api import Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import share
from nodetune.checks.shared.rdma_ports import for_gpus

RDMA = "tx_vport_rdma_unicast_packets"
MIN_PACKETS, MIN_MARKED_SHARE = 1_000_000, 0.01
"""The fewest packets to judge, and the smallest share of them that counts as marked."""


def observe(facts: FactsView) -> dict[str, str] | Absent:
    counters, dcb = facts["net.counters"], facts["net.dcb"]
    links = {port["netdev"] for port in for_gpus(facts["rdma.ports"], "Ethernet").values()}
    judged = [link for link in sorted(links & dcb.keys()) if dcb[link]["pfc"] and RDMA in counters.get(link, {})]
    return {link: _problem(counters[link], dcb[link]["pfc"]) for link in judged} or Absent(
        "no RoCE link of 100 Gb/s or more has PFC and counts its priorities"
    )


def _problem(counted: Mapping[str, int], priorities: list[int]) -> str:
    sent = counted[RDMA]
    marked = min(sent, sum(counted.get(f"tx_prio{priority}_packets", 0) for priority in priorities))
    if sent < MIN_PACKETS or marked >= MIN_MARKED_SHARE * sent:
        return ""
    return f"{share(marked, sent)} RDMA packets were sent in priority {', '.join(map(str, priorities))}, which has PFC"


CHECK = Check(
    needs=("rdma.ports", "net.counters", "net.dcb"),
    observe=observe,
    accept=Empty("RDMA traffic in a priority with PFC"),
    remedy=manual(
        "Give RDMA the class of the lossless priority, to match the switches (here 106: DSCP 26, priority 3): NCCL_IB_TC=106 for "
        "NCCL, or for all programs echo 106 > /sys/class/infiniband/DEVICE/tc/1/traffic_class and mlnx_qos -i LINK "
        "--trust=dscp. Repeat at boot."
    ),
    severity="low",
    part_of="roce-qos-inconsistent",
)

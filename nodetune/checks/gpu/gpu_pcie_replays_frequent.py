"""The PCIe link of a GPU replays packets often.

Why it matters: A replay means that a packet was damaged by a marginal slot, riser or cable. Replays cost bandwidth and
tend to end with the GPU off the bus. The check judges the average since boot, so a recent burst can stay hidden.
Healthy exception: A few replays since boot are normal.
Confirm manually: nvidia-smi --query-gpu=index,pcie.link.gen.current -q | grep -i replay
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, AtMost, Check, FactsView, manual


def observe(facts: FactsView) -> dict[str, float]:
    minutes = max(1.0, facts["host.uptime_s"] / 60)
    return {name: round(count / minutes, 2) for name, count in facts["gpu.pcie_replay_counter"].items()}


CHECK = Check(
    needs=("gpu.pcie_replay_counter", "host.uptime_s"),
    observe=observe,
    accept=AtMost(8),
    unit="per minute",
    applies=(GPU,),
    remedy=manual(
        "Reseat the GPU or its riser and cables. Compare the error status in lspci -vv. Swap slots to find the faulty "
        "part."
    ),
    severity="high",
    cost="bandwidth",
)

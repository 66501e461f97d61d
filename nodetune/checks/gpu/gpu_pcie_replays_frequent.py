"""A GPU's PCIe link repeats packets often.

Why it matters: Every repeat is a damaged packet: a marginal slot, riser or cable. It costs bandwidth and tends to end
with the GPU off the bus. Judged is the average since boot, so a recent burst can hide.
Confirm by hand: nvidia-smi --query-gpu=index,pcie.link.gen.current -q | grep -i replay
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, float]:
    minutes = max(1.0, facts["host.uptime_s"] / 60)
    return {name: round(count / minutes, 2) for name, count in facts["gpu.pcie_replay_counter"].items()}


CHECK = Check(
    needs=("gpu.pcie_replay_counter", "host.uptime_s"),
    observe=observe,
    accept=AtMost(8),
    unit="a minute",
    applies=(GPU,),
    remedy=manual(
        "Reseat the GPU or its riser and cables; compare lspci -vv error status; swap slots to find the bad part."
    ),
    severity="high",
)

"""GPUs on one NVSwitch fabric cannot reach each other over NVLink.

Why it matters: All links of these GPUs lead to switches, yet the driver refuses peer access. NCCL falls back to PCIe
or host memory and loses most of its bandwidth.
Healthy exception: GPUs in MIG mode have no peer access, nor have GPUs that Fabric Manager gives to virtual machines.
For some minutes after a boot, links train.
Confirm manually: nvidia-smi topo -p2p n
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import GPU, Absent, Check, Equals, FactsView, manual
from nodetune.checks.gpu import _fabric


def observe(facts: FactsView) -> dict[str, Any] | Absent:
    if _fabric.shared(facts):
        return _fabric.GIVEN_AWAY
    remotes, mig = facts["gpu.nvlink_remote"], facts.get("gpu.mig_mode", {})
    switched = {name for name, kinds in remotes.items() if set(kinds) == {"switch"} and mig.get(name) != "enabled"}
    found = {pair: status["nvlink"] for pair, status in facts["gpu.p2p"].items() if set(pair.split("-")) <= switched}
    return _fabric.settled(facts, found, good="ok")


CHECK = Check(
    needs=("gpu.p2p", "gpu.nvlink_remote", "gpu.mig_mode", _fabric.UPTIME, _fabric.MODE),
    observe=observe,
    accept=Equals("ok"),
    applies=(GPU,),
    remedy=manual(
        "Make sure that Fabric Manager runs and that nvidia-smi -q shows the fabric as Completed / Success for every "
        "GPU. In a virtual machine, ask for one fabric partition with all its GPUs."
    ),
    severity="high",
    name="NVLink P2P",
    cost="bandwidth",
)

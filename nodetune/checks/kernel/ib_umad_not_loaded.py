"""Fabric Manager of an HGX B200 or B300 does not run, and the ib_umad module is not loaded.

Why it matters: On these boards Fabric Manager and the NVLink Subnet Manager (nvlsm) reach the NVSwitches through
InfiniBand management devices, which this module provides. Without it the check that precedes Fabric Manager's start
fails, and CUDA does not start (error 802). Some distributions keep the module in an extra package.
Healthy exception: The module may be built into the kernel: Fabric Manager runs.
Confirm manually: lsmod | grep ib_umad; ls /dev/infiniband/umad*; systemctl status nvidia-fabricmanager
Side effects of the fix: None.
Sources: https://github.com/spectrocloud/CanvOS/pull/700 ;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html (fourth generation NVSwitches)
"""

import re

from nodetune.api import BARE_METAL, GPU, Check, Empty, FactAbsentError, FactsView, module


def missing(facts: FactsView) -> str:
    if not any(re.search(r"\bB[23]00\b", name) for name in facts["gpu.names"].values()):
        raise FactAbsentError("no board whose NVSwitches are reached over InfiniBand")
    unit = facts.get("services.nvidia-fabricmanager") or {}
    runs = unit.get("active") == "active" or facts["services.processes"].get("nv-fabricmanager")
    return "" if runs or "ib_umad" in facts["modules.loaded"] else "not loaded"


CHECK = Check(
    observe=missing,
    needs=("gpu.names", "modules.loaded", "services.nvidia-fabricmanager", "services.processes"),
    accept=Empty("loaded"),
    set="loaded",
    applies=(GPU, BARE_METAL),
    remedy=module("ib_umad"),
    severity="high",
)

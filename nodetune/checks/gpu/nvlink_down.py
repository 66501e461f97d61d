"""An NVLink is down.

Why it matters: Each missing link takes its share of bandwidth from every collective, or NCCL stops using NVLink
altogether. On boards whose links are all wired (SXM), every link must be up. On others, a GPU must have as many links
up as its peers; a card whose links are all down has no bridge. So must the GPUs of a virtual machine that has only a part
of a board. The check ignores GPUs in MIG mode, because MIG may switch their links off.
Healthy exception: Cards without a bridge and GPUs in MIG mode have no links up. In a virtual machine with a part of a
board, each GPU has a part of its links.
Does not gate: How many links should be up depends on the board, on bridges and on the hypervisor, and DCGM has called
cards without a bridge faulty. A job on one GPU needs no link. The table of models is not on the nodes.
Confirm manually: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html (virtual machines with four, two and one GPU) ;
https://github.com/NVIDIA/NVSentinel/pull/1481 (cards without a bridge)
"""

import re

from nodetune import data
from nodetune.api import GPU, AtLeast, Check, Empty, FactsView, When, manual
from nodetune.checks.gpu._peers import highest

BOARD, TRAY = 8, 4
"""GPUs of an HGX board, and of a GB200 or GB300 tray."""


def observe(facts: FactsView) -> dict[str, str]:
    models, mig = facts["gpu.pci_device_id"], facts.get("gpu.mig_mode", {})
    states = {name: state for name, state in facts["gpu.nvlink_state"].items() if mig.get(name) != "enabled"}
    peers = highest({name: len(state["active"]) for name, state in states.items()}, models)
    names = facts.readable("gpu.names", {})
    part = _part_of_a_board(facts, names)
    found = {}
    for name, state in states.items():
        wired = 0 if part else data.gpu(models.get(name, "")).get("nvlinks", 0)
        bridged = not wired and "SXM" not in names.get(name, "")
        found[name] = "" if bridged and not state["active"] else _problem(state, max(peers[name], wired))
    return found


def _part_of_a_board(facts: FactsView, names: dict[str, str]) -> bool:
    """Return whether this is a virtual machine with a part of a board, whose GPUs may have only a part of their links."""
    whole = TRAY if any(re.search(r"\bGB[23]00\b", name) for name in names.values()) else BOARD
    return bool(facts.readable("host.virtual", None)) and facts["gpu.count"] < whole


def _problem(state: dict[str, list[int]], wanted: int) -> str:
    up, down = state["active"], state["inactive"]
    if len(up) >= wanted:
        return ""
    named = f": link {', '.join(map(str, down))}" if up and down else ""
    return f"{len(up)} of {wanted} links up{named}"


CHECK = Check(
    needs=("gpu.nvlink_state", "gpu.pci_device_id", "gpu.mig_mode", "gpu.names", "gpu.count", "host.virtual"),
    observe=observe,
    accept=Empty("all links up"),
    applies=(GPU, When("gpu.count", AtLeast(2), "only one GPU: nothing to link to")),
    remedy=manual(
        "Drain the node. Make sure that Fabric Manager runs, then reset all GPUs (nvidia-smi -r) or power the host "
        "off and on. If a link stays down, the GPU, the baseboard or a switch is faulty: open a case with the vendor."
    ),
    severity="critical",
)

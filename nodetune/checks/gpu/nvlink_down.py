"""An NVLink is down.

Why it matters: Each missing link takes its share of bandwidth from every collective, or NCCL stops using NVLink
altogether. On boards whose links are all wired (SXM), every link must be up. On others, a GPU must have as many links
up as its peers; a card whose links are all down has no bridge. So must the GPUs of a virtual machine that has only a part
of a board. The check ignores GPUs in MIG mode, because MIG may switch their links off.
Healthy exception: Cards without a bridge and GPUs in MIG mode have no links up. In a virtual machine with a part of a
board, each GPU has a part of its links. So it has on a host whose Fabric Manager gives GPUs to virtual machines. Links train
for some minutes after a boot.
Does not gate: How many links should be up depends on the board, on bridges and on the hypervisor, and DCGM has called
cards without a bridge faulty. A job on one GPU needs no link. The table of models is not on the nodes.
Confirm manually: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html (virtual machines with four, two and one GPU) ;
https://github.com/NVIDIA/NVSentinel/pull/1481 (cards without a bridge) ;
https://github.com/NVIDIA/NVSentinel/issues/1701 (214 of 288 healthy nodes, after a boot)
"""

from __future__ import annotations

from nodetune import data
from nodetune.api import GPU, Absent, AtLeast, Check, Each, Empty, FactsView, Unread, Value, When, repair
from nodetune.checks.gpu import _fabric
from nodetune.checks.shared.gpu_peers import MODELS, RACKS, highest, models

BOARD, TRAY = 8, 4
"""GPUs of an HGX board, and of a tray of a rack."""

ENABLED = Value("enabled")
_UNCLEAR = "fewer links than the board has, as in a virtual machine with a part of it; unknown whether this is one"


def observe(facts: FactsView) -> dict[str, str | Unread | Absent]:
    states = {name: state for name, state in facts["gpu.nvlink_state"].items() if _mode(facts, name) != ENABLED}
    model_of, names = models(facts), facts.readable("gpu.names", {})
    peers = highest({name: len(state["active"]) for name, state in states.items()}, model_of)
    part = _part_of_a_board(facts, names, len(states))
    found: dict[str, str | Unread | Absent] = {}
    for name, state in states.items():
        wired = 0 if part else data.gpu(model_of.get(name, "")).get("nvlinks", 0)
        if not state["active"] and not wired and "SXM" not in names.get(name, ""):
            found[name] = ""
        elif not state["active"] and isinstance(_mode(facts, name), Unread):
            found[name] = Unread("no link is up, and unknown whether the GPU is in MIG mode")
        elif part is None and len(state["active"]) >= peers[name]:
            found[name] = Unread(_UNCLEAR) if _problem(state, wired) else ""
        else:
            problem = _problem(state, max(peers[name], wired))
            found[name] = _fabric.GIVEN_AWAY if problem and _fabric.shared(facts) else problem
    return _fabric.settled(facts, found, good="")


def _mode(facts: FactsView, name: str) -> Value | Absent | Unread | None:
    """Return the MIG mode of a GPU."""
    fact = facts.fact("gpu.mig_mode")
    return fact.of.get(name) if isinstance(fact, Each) else fact


def _part_of_a_board(facts: FactsView, names: dict[str, str], seen: int) -> bool | None:
    """Return whether this is a virtual machine with a part of a board, whose GPUs may have only a part of their links.

    None: unknown whether this is a virtual machine.
    """
    whole = TRAY if any(map(RACKS.search, names.values())) else BOARD
    virtual: bool | None = facts.readable("host.virtual")
    return virtual if facts.readable("gpu.count", seen) < whole else False


def _problem(state: dict[str, list[int]], wanted: int) -> str:
    up, down = state["active"], state["inactive"]
    if len(up) >= wanted:
        return ""
    named = f", link {', '.join(map(str, down))} down" if up and down else ""
    return f"{len(up)} of {wanted} links up{named}"


CHECK = Check(
    needs=("gpu.nvlink_state", *MODELS, "gpu.mig_mode", "gpu.count", "host.virtual", _fabric.UPTIME, _fabric.MODE),
    observe=observe,
    accept=Empty("all links up"),
    applies=(GPU, When("gpu.count", AtLeast(2), "only one GPU: nothing to link to")),
    remedy=repair(
        "Drain the node. Make sure that Fabric Manager runs, then reset all GPUs (nvidia-smi -r) or power the host "
        "off and on. If a link stays down, the GPU, the baseboard or a switch is faulty: open a case with the vendor."
    ),
    severity="critical",
)

"""An NVLink is down.

Why it matters: Each missing link takes its share of bandwidth from every collective, or NCCL stops using NVLink
altogether. On boards whose links are all wired (SXM), every link must be up. On others, a GPU must have as many links
up as its peers; a card whose links are all down has no bridge. The check ignores GPUs in MIG mode, because MIG may switch
their links off.
Confirm manually: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.api import GPU, AtLeast, Check, Empty, FactsView, When, manual
from nodetune.checks.gpu._siblings import highest


def observe(facts: FactsView) -> dict[str, str]:
    models, mig = facts["gpu.pci_device_id"], facts.get("gpu.mig_mode", {})
    states = {name: state for name, state in facts["gpu.nvlink_state"].items() if mig.get(name) != "enabled"}
    peers = highest({name: len(state["active"]) for name, state in states.items()}, models)
    names = facts.readable("gpu.names", {})
    found = {}
    for name, state in states.items():
        wired = data.gpu(models.get(name, "")).get("nvlinks", 0)
        bridged = not wired and "SXM" not in names.get(name, "")
        found[name] = "" if bridged and not state["active"] else _problem(state, max(peers[name], wired))
    return found


def _problem(state: dict[str, list[int]], wanted: int) -> str:
    up, down = state["active"], state["inactive"]
    if len(up) >= wanted:
        return ""
    named = f": link {', '.join(map(str, down))}" if up and down else ""
    return f"{len(up)} of {wanted} links up{named}"


CHECK = Check(
    needs=("gpu.nvlink_state", "gpu.pci_device_id", "gpu.mig_mode", "gpu.names"),
    observe=observe,
    accept=Empty("all links up"),
    applies=(GPU, When("gpu.count", AtLeast(2), "only one GPU: nothing to link to")),
    remedy=manual(
        "Drain the node. Make sure that Fabric Manager runs, then reset all GPUs (nvidia-smi -r) or power the host "
        "off and on. If a link stays down, the GPU, the baseboard or a switch is faulty: open a case with the vendor."
    ),
    severity="critical",
)

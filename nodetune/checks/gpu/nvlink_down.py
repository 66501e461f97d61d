"""A GPU has NVLinks that are down.

Why it matters: Each link that is missing takes its share of the bandwidth from every collective, or NCCL gives NVLink
up altogether. On boards whose links are all wired (SXM) every link must be up; of other GPUs those with fewer links
than their siblings are told. GPUs in MIG mode are left out: theirs may
be switched off with it.
Confirm by hand: nvidia-smi nvlink -s
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/health-validation/reference/checks/nvlink ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.checks.gpu._siblings import highest
from nodetune.conditions import GPU
from nodetune.expect import AtLeast, Empty
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    models, mig = facts["gpu.pci_device_id"], facts.get("gpu.mig_mode", {})
    states = {name: state for name, state in facts["gpu.nvlink_state"].items() if mig.get(name) != "enabled"}
    siblings = highest({name: len(state["active"]) for name, state in states.items()}, models)
    return {
        name: _problem(state, max(siblings[name], data.gpu(models.get(name, "")).get("nvlinks", 0)))
        for name, state in states.items()
    }


def _problem(state: dict[str, list[int]], wanted: int) -> str:
    up, down = state["active"], state["inactive"]
    if len(up) >= wanted:
        return ""
    named = f": link {', '.join(map(str, down))}" if up and down else ""
    return f"{len(up)} of {wanted} links up{named}"


CHECK = Check(
    needs=("gpu.nvlink_state", "gpu.pci_device_id", "gpu.mig_mode"),
    observe=observe,
    accept=Empty("all links up"),
    applies=(GPU, When("gpu.count", AtLeast(2), "only one GPU: nothing to link to")),
    remedy=manual(
        "Drain the node. See that Fabric Manager runs, then reset all GPUs (nvidia-smi -r) or power the host off and on. A link "
        "that stays down is a fault of the GPU, the baseboard or a switch: open a case with the vendor."
    ),
    severity="critical",
)

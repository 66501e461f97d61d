"""podman has no CDI specification of the GPUs.

Why it matters: podman gives out GPUs by CDI only (--device nvidia.com/gpu=all); without a specification such a
container does not start. If nobody runs GPU containers with podman here, waive this.
Confirm by hand: nvidia-ctk cdi list
Side effects of the fix: None.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
"""

from nodetune.conditions import CONTAINERS, GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    if "podman" not in facts["containers.engines"] or facts.get("containers.toolkit") is None:
        raise Missing("no podman, or no toolkit that would serve it")
    return "" if facts["containers.cdi"] else "no specification"


CHECK = Check(
    needs=("containers.engines", "containers.toolkit", "containers.cdi"),
    observe=observe,
    accept=Empty("a CDI specification"),
    applies=(CONTAINERS, GPU_ON_PCI),
    remedy=manual("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, and again after each driver update"),
    severity="info",
)

"""podman has no CDI specification for the GPUs.

Why it matters: podman provides GPUs through CDI only (--device nvidia.com/gpu=all). Without a specification, such a
container does not start. Where there is another engine, podman is judged not to run GPU containers: distributions install it by default.
Confirm manually: nvidia-ctk cdi list
Side effects of the fix: None.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
"""

from nodetune.api import CONTAINERS, GPU_ON_PCI, Check, Empty, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    if set(facts["containers.engines"]) != {"podman"} or facts.get("containers.toolkit") is None:
        raise FactAbsentError("podman is not the only engine, or the NVIDIA Container Toolkit is not installed")
    return "" if facts["containers.cdi"] else "no specification"


CHECK = Check(
    needs=("containers.engines", "containers.toolkit", "containers.cdi"),
    observe=observe,
    accept=Empty("a CDI specification"),
    applies=(CONTAINERS, GPU_ON_PCI),
    remedy=manual("Run nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, and again after each driver update"),
    severity="info",
    name="podman",
)

"""No NVIDIA Container Toolkit for the container engine of a GPU host.

Why it matters: The engine has no way to give a GPU, its driver libraries and its devices to a container; docker run
--gpus fails with "could not select device driver".
Confirm by hand: nvidia-ctk --version; ls /etc/cdi /run/cdi
Side effects of the fix: Configuring an engine's runtime restarts the engine, and with it containers unless live-restore is on.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from nodetune.conditions import CONTAINERS, GPU_ON_PCI
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    """CDI specifications do as well: they work without the toolkit once they are written."""
    if set(facts["containers.engines"]) <= {"podman"}:
        raise Missing("only podman, which distributions install unasked")
    there = facts.get("containers.toolkit") or facts["containers.cdi"]
    return "installed" if there else "not installed"


CHECK = Check(
    needs=("containers.engines", "containers.toolkit", "containers.cdi"),
    observe=observe,
    accept=Equals("installed"),
    applies=(CONTAINERS, GPU_ON_PCI),
    remedy=manual(
        "Install nvidia-container-toolkit from NVIDIA's repository, then: nvidia-ctk runtime configure --runtime=docker (or "
        "containerd, crio), and restart the engine. On Kubernetes the GPU Operator installs it"
    ),
    severity="medium",
)

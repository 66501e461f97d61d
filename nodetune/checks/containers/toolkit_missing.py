"""The NVIDIA Container Toolkit is not installed.

Why it matters: The container engine cannot pass a GPU, its driver libraries and its devices to a container. docker run
--gpus fails with "could not select device driver".
Healthy exception: Pods whose device plugin mounts the driver itself (GKE) need no toolkit: where GPUs are registered with the
kubelet, the plugin has found them.
Confirm manually: nvidia-ctk --version; ls /etc/cdi /run/cdi
Side effects of the fix: Configuring an engine's runtime restarts the engine. This also restarts its containers unless
live-restore is on.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from nodetune.api import CONTAINERS, GPU_ON_PCI, Check, Equals, FactAbsentError, FactsView, manual
from nodetune.checks.shared.device_plugin import DEVICES, has_found_gpus


def observe(facts: FactsView) -> str:
    """Return whether the toolkit is installed. CDI specifications suffice: they work without it once generated."""
    if set(facts["containers.engines"]) <= {"podman"}:
        raise FactAbsentError("podman is the only engine, and distributions install it by default")
    if has_found_gpus(facts):
        raise FactAbsentError("a device plugin has found GPUs: pods get them in its way")
    provided = facts.get("containers.toolkit") or facts["containers.cdi"]
    return "installed" if provided else "not installed"


CHECK = Check(
    needs=("containers.engines", "containers.toolkit", "containers.cdi", DEVICES),
    observe=observe,
    accept=Equals("installed"),
    applies=(CONTAINERS, GPU_ON_PCI),
    remedy=manual(
        "Install nvidia-container-toolkit from NVIDIA's repository, then: nvidia-ctk runtime configure --runtime=docker (or "
        "containerd, crio), and restart the engine. On Kubernetes the GPU Operator installs it."
    ),
    severity="medium",
    name="container toolkit",
)

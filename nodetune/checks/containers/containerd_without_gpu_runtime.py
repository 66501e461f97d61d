"""containerd has neither an NVIDIA runtime nor CDI for its pods.

Why it matters: containerd has neither a runtime called nvidia nor a CDI specification of the GPUs. The device plugin
itself then finds no GPU. Pods that request a GPU never start.
Healthy exception: Pods that get their GPUs through CDI need no runtime called nvidia. Nor do those whose device plugin mounts
the driver itself (GKE): where GPUs are registered with the kubelet, the plugin has found them.
Confirm manually: containerd config dump | grep -A3 -i nvidia; ls /etc/cdi /run/cdi
Side effects of the fix: containerd restarts. Running containers continue.
Sources: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from nodetune.api import GPU_ON_PCI, KUBELET, Check, FactAbsentError, FactsView, OneOf, repair
from nodetune.checks.shared.device_plugin import DEVICES, has_found_gpus


def observe(facts: FactsView) -> str:
    """Return how pods get GPUs. CDI counts unless it is disabled (containerd 2 enables it by default)."""
    if has_found_gpus(facts):
        raise FactAbsentError("a device plugin has found GPUs: pods get them in its way")
    endpoint = facts.readable("kubernetes.kubelet", {}).get("settings", {}).get("containerRuntimeEndpoint", "")
    if endpoint and "containerd" not in endpoint:
        raise FactAbsentError(f"the kubelet uses another engine: {endpoint}")
    containerd = facts["containers.containerd"]
    if containerd["nvidia_runtime"]:
        return "runtime"
    return "CDI" if facts["containers.cdi"] and containerd["enable_cdi"] is not False else "none"


CHECK = Check(
    needs=("containers.containerd", "containers.cdi", DEVICES, "kubernetes.kubelet"),
    observe=observe,
    accept=OneOf(["runtime", "CDI"]),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=repair(
        "nvidia-ctk runtime configure --runtime=containerd; systemctl restart containerd (the GPU Operator does both)"
    ),
    severity="high",
    name="containerd",
)

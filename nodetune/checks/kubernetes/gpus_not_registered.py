"""The kubelet does not offer all GPUs of the node.

Why it matters: Pods that request nvidia.com/gpu stay pending, or the node runs at reduced capacity. Either the device
plugin is not running, or it found a GPU unhealthy.
Healthy exception: With MIG, the plugin may offer slices under the name of whole GPUs. Other plugins offer shares of GPUs
(HAMi), or GPUs under names of their own (such as volcano.sh/vgpu-number).
Confirm manually: kubectl get node NODE -o jsonpath='{.status.allocatable}'; ls /var/lib/kubelet/device-plugins
Side effects of the fix: Restarting the device plugin does not affect running pods.
Sources: https://github.com/NVIDIA/k8s-device-plugin ;
https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
"""

from nodetune.api import GPU, KUBELET, Check, Equals, FactAbsentError, FactsView, Ref, manual

WHOLE = {"nvidia.com/gpu", "nvidia.com/gpu.shared"}


def observe(facts: FactsView) -> int:
    """Return the number of whole GPUs that the kubelet records as healthy. A shared GPU counts once."""
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    devices = facts.get("kubernetes.devices", {})
    if "enabled" in facts.readable("gpu.mig_mode", {}).values():
        raise FactAbsentError("a GPU is in MIG mode: the plugin counts MIG devices")
    if any(name.startswith("nvidia.com/mig-") for name in devices):
        raise FactAbsentError("the GPUs are offered as MIG devices")
    if any("gpu.nvidia.com" in name for name in facts["kubernetes.plugins"]):
        raise FactAbsentError("a DRA driver allocates the GPUs")
    whole = int(sum(devices.get(name, 0) for name in WHOLE))
    if whole > facts["gpu.count"] or any("gpu" in name for name in set(devices) - WHOLE):
        raise FactAbsentError("another plugin offers the GPUs, in shares or under a name of its own")
    return whole


CHECK = Check(
    needs=("kubernetes.kubelet", "kubernetes.devices", "kubernetes.plugins", "gpu.mig_mode", "gpu.count"),
    observe=observe,
    accept=Equals(Ref("gpu.count")),
    applies=(KUBELET, GPU),
    remedy=manual(
        "Read the log of the device plugin's pod on this node (kubectl -n NAMESPACE logs POD): it names the unhealthy GPUs. "
        "If there is no such pod, install the GPU Operator or NVIDIA's device plugin, and give this node the label that the "
        "plugin's node selector names (kubectl -n NAMESPACE get daemonset)."
    ),
    severity="high",
    name="GPUs in the kubelet",
    part_of=("gpu-lost", "gpu-missing"),
)

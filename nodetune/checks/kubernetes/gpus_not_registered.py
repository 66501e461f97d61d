"""The kubelet does not offer all of the node's GPUs to pods.

Why it matters: Pods that ask for nvidia.com/gpu stay pending, or the node runs at a part of its size. Either the device
plugin does not run, or it found a GPU unhealthy.
Confirm by hand: kubectl get node NODE -o jsonpath='{.status.allocatable}'; ls /var/lib/kubelet/device-plugins
Side effects of the fix: Restarting the device plugin does not touch running pods.
Sources: https://github.com/NVIDIA/k8s-device-plugin ;
https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
"""

from nodetune.conditions import GPU, KUBELET
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> int:
    """Whole GPUs in the kubelet's own record of healthy devices; a shared GPU counts once."""
    if not facts["kubernetes.kubelet"]["running"]:
        raise Missing("the kubelet does not run")
    devices = facts.get("kubernetes.devices", {})
    if "enabled" in facts.readable("gpu.mig_mode", {}).values():
        raise Missing("a GPU is in MIG mode: the plugin counts its slices")
    if any(name.startswith("nvidia.com/mig-") for name in devices):
        raise Missing("the GPUs are offered as MIG slices")
    if any("gpu.nvidia.com" in name for name in facts["kubernetes.plugins"]):
        raise Missing("a DRA driver gives out the GPUs")
    return int(devices.get("nvidia.com/gpu", 0) + devices.get("nvidia.com/gpu.shared", 0))


CHECK = Check(
    needs=("kubernetes.kubelet", "kubernetes.devices", "kubernetes.plugins", "gpu.mig_mode"),
    observe=observe,
    accept=Equals(Ref("gpu.count")),
    applies=(KUBELET, GPU),
    remedy=manual(
        "Look at the device plugin's pod on this node (kubectl -n NAMESPACE logs POD): it names GPUs that it holds for unhealthy. "
        "Without such a pod: install the GPU Operator or NVIDIA's device plugin, and its node selector's label"
    ),
    severity="high",
)

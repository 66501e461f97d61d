"""The kubelet does not offer all MIG devices of the node.

Why it matters: The device plugin was started before the GPUs were divided, or its strategy (MIG_STRATEGY) does not fit:
none offers whole GPUs, of which a pod uses one slice, and single needs equal slices on all GPUs. Slices idle while pods wait.
Healthy exception: A DRA driver divides GPUs itself. Other plugins offer slices under names of their own.
Confirm manually: kubectl get node NODE -o jsonpath='{.status.allocatable}'; nvidia-smi -L
Side effects of the fix: Restarting the device plugin does not affect running pods.
Sources: https://github.com/NVIDIA/k8s-device-plugin#configuration-option-details ;
https://docs.nvidia.com/datacenter/cloud-native/kubernetes/latest/index.html
"""

from __future__ import annotations

from nodetune.api import GPU, KUBELET, Check, Empty, FactAbsentError, FactsView, manual

KINDS = ("nvidia.com/gpu", "nvidia.com/mig-")


def observe(facts: FactsView) -> str:
    slices = facts["gpu.mig_devices"]
    if not any(slices.values()):
        raise FactAbsentError("no GPU is divided")
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    devices = facts.get("kubernetes.devices", {})
    drivers = any("gpu.nvidia.com" in name for name in facts["kubernetes.plugins"])
    if drivers or any("gpu" in name and not name.startswith(KINDS) for name in devices):
        raise FactAbsentError("a DRA driver or another plugin offers the GPUs")
    there = sum(sum(each.values()) or 1 for each in slices.values())
    offered = sum(count for name, count in devices.items() if name.startswith(KINDS))
    return f"{offered} of {there} slices and whole GPUs" if offered < there else ""


CHECK = Check(
    needs=("gpu.mig_devices", "kubernetes.kubelet", "kubernetes.devices", "kubernetes.plugins"),
    observe=observe,
    accept=Empty("all slices and whole GPUs"),
    applies=(KUBELET, GPU),
    remedy=manual(
        "Restart the device plugin's pod on this node, and read its log (kubectl -n NAMESPACE logs POD). With different slices "
        "set MIG_STRATEGY=mixed (GPU Operator: mig.strategy), or divide all GPUs alike."
    ),
    severity="medium",
    part_of=("mig-layout-unwanted", "mig-without-instances"),
)

"""A device plugin and a DRA driver both offer this node's GPUs.

Why it matters: Neither knows what the other gave away. Two pods can get the same GPU: one runs out of memory, or both run
at half speed.
Healthy exception: The DRA driver for compute domains offers no GPUs. A name of a device plugin that a DRA driver serves
(extended resources) is not registered by a plugin.
Confirm manually: ls /var/lib/kubelet/plugins_registry; kubectl get node NODE -o jsonpath='{.status.allocatable}';
kubectl get resourceslices --field-selector spec.driver=gpu.nvidia.com
Side effects of the fix: Drain the node first.
Sources: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/dra-intro-install.html ;
https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, KUBELET, Check, Empty, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    driver = [name for name in facts["kubernetes.plugins"] if name.startswith("gpu.nvidia.com")]
    offered = facts.get("kubernetes.devices", {})
    plugin = [
        name for name, count in offered.items() if count and name.startswith(("nvidia.com/gpu", "nvidia.com/mig-"))
    ]
    return f"{', '.join(sorted(plugin))} and {driver[0]}" if driver and plugin else ""


CHECK = Check(
    needs=("kubernetes.kubelet", "kubernetes.devices", "kubernetes.plugins"),
    observe=observe,
    accept=Empty("one of them"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "Keep one: devicePlugin.enabled=false in the GPU Operator's values, or resources.gpus.enabled=false in those of the DRA "
        "driver. Or give the nodes of each a label of their own."
    ),
    severity="medium",
)

"""The kubelet's memory manager does not take part in NUMA placement.

Why it matters: With the CPU manager static and a topology manager, a pod's cores and GPUs come from one NUMA node, but its
memory may come from any. The policy Static reserves memory and huge pages of guaranteed pods on the same NUMA nodes. It
is judged only where the CPU manager is static: on its own, it helps little.
Confirm manually: grep -A5 memoryManagerPolicy /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first. The kubelet does not start unless reservedMemory adds up exactly to
kubeReserved, systemReserved and the eviction threshold.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, SEVERAL_NUMA_NODES, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    """Return the policy. If nothing sets it, the kubelet's documented default is None."""
    settings = facts["kubernetes.kubelet"]["settings"]
    if settings.get("cpuManagerPolicy") != "static" or settings.get("topologyManagerPolicy", "none") == "none":
        raise FactAbsentError("the CPU manager is not static, or there is no topology manager")
    return str(settings.get("memoryManagerPolicy", "None"))


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("Static"),
    applies=(KUBELET, GPU_ON_PCI, SEVERAL_NUMA_NODES),
    remedy=manual(
        "kubectl drain NODE; systemctl stop kubelet; rm /var/lib/kubelet/memory_manager_state; write memoryManagerPolicy: Static "
        "and reservedMemory for each NUMA node into /var/lib/kubelet/config.yaml; systemctl start kubelet; kubectl uncordon NODE"
    ),
    severity="info",
)

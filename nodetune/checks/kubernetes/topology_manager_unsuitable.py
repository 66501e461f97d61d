"""The kubelet's topology manager policy is unsuitable.

Why it matters: With the policy none (the default), a pod's GPUs, cores and NICs may come from different NUMA nodes.
Traffic between them then crosses the sockets. With single-numa-node, the kubelet refuses a pod that needs more GPUs
than one NUMA node has (TopologyAffinityError), such as a whole-node training pod.
Confirm manually: grep topologyManager /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first: the kubelet restarts, and with restricted some pods no longer fit.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/topology-manager/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, SEVERAL_NUMA_NODES, Check, FactsView, OneOf, manual


def observe(facts: FactsView) -> str:
    """Return the policy. If nothing sets it, the kubelet's documented default is none."""
    return str(facts["kubernetes.kubelet"]["settings"].get("topologyManagerPolicy", "none"))


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=OneOf(["best-effort", "restricted"]),
    applies=(KUBELET, GPU_ON_PCI, SEVERAL_NUMA_NODES),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: write topologyManagerPolicy: "
        "best-effort (or restricted) into /var/lib/kubelet/config.yaml, then systemctl restart kubelet && kubectl uncordon NODE\n"
        'With more than 8 NUMA nodes the kubelet also needs topologyManagerPolicyOptions: {max-allowable-numa-nodes: "NUMBER"} '
        "(from Kubernetes 1.31 on): else it does not start"
    ),
    severity="low",
    name="topology manager",
)

"""The kubelet does not keep a pod's GPUs, cores and NICs on one NUMA node.

Why it matters: With the policy none (the default) each comes from anywhere, and traffic between them crosses the
sockets. With single-numa-node a pod that needs more GPUs than one node of memory has is refused
(TopologyAffinityError), which a whole-node training pod does.
Confirm by hand: grep topologyManager /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first: the kubelet restarts, and with restricted some pods no longer fit.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/topology-manager/
"""

from nodetune.conditions import GPU_ON_PCI, KUBELET, SEVERAL_NUMA_NODES
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """The policy; none where nothing sets it, which is the kubelet's documented default."""
    return str(facts["kubernetes.kubelet"]["settings"].get("topologyManagerPolicy", "none"))


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=OneOf(["best-effort", "restricted"]),
    applies=(KUBELET, GPU_ON_PCI, SEVERAL_NUMA_NODES),
    remedy=manual(
        "kubectl drain NODE; write topologyManagerPolicy: best-effort (or restricted) into /var/lib/kubelet/config.yaml; "
        "systemctl restart kubelet; kubectl uncordon NODE"
    ),
    severity="low",
)

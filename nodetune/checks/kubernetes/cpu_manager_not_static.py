"""The kubelet's CPU manager policy is not 'static'.

Why it matters: With the CPU manager policy none, a pod's threads move over all cores of the machine and compete with
other pods. The topology manager has no cores to align. The policy static gives whole cores to guaranteed pods that
request them.
Confirm manually: grep cpuManagerPolicy /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first. The kubelet does not start while the old cpu_manager_state exists, nor
without reserved cores. Only guaranteed pods with whole CPUs benefit.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str:
    """Return the policy. If nothing sets it, the kubelet's documented default is none."""
    return str(facts["kubernetes.kubelet"]["settings"].get("cpuManagerPolicy", "none"))


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("static"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: systemctl stop kubelet && "
        "rm -f /var/lib/kubelet/cpu_manager_state, write cpuManagerPolicy: static and reservedSystemCPUs: LIST into "
        "/var/lib/kubelet/config.yaml, then systemctl start kubelet && kubectl uncordon NODE"
    ),
    severity="low",
    name="kubelet CPU manager",
)

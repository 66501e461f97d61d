"""reservedSystemCPUs is not set for the kubelet.

Why it matters: With the static CPU manager and no reservedSystemCPUs, the kubelet reserves a number of cores, starting
from the lowest. Interrupts and system services can only be confined to the reserved cores if the list is explicit and
the same for both.
Confirm manually: grep reservedSystemCPUs /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first. The kubelet's cpu_manager_state must be removed.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, Check, Equals, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> str:
    settings = facts["kubernetes.kubelet"]["settings"]
    if settings.get("cpuManagerPolicy") != "static":
        raise FactAbsentError("the CPU manager is not static")
    return "named" if settings.get("reservedSystemCPUs") else "by number"


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("named"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: systemctl stop kubelet && "
        "rm -f /var/lib/kubelet/cpu_manager_state, write reservedSystemCPUs: LIST (some cores of each NUMA node) into "
        "/var/lib/kubelet/config.yaml, then systemctl start kubelet && kubectl uncordon NODE"
    ),
    severity="info",
    name="reserved CPUs",
)

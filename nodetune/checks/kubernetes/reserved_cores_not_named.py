"""The kubelet picks the cores for the system by itself.

Why it matters: With the static CPU manager and no reservedSystemCPUs it reserves a number of cores, the lowest ones.
Interrupts and system services can only be kept on the reserved cores where the list is known and the same for both.
Confirm by hand: grep reservedSystemCPUs /var/lib/kubelet/config.yaml
Side effects of the fix: Drain first; the kubelet's cpu_manager_state must be removed.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/
"""

from nodetune.conditions import GPU_ON_PCI, KUBELET
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> str:
    settings = facts["kubernetes.kubelet"]["settings"]
    if settings.get("cpuManagerPolicy") != "static":
        raise Missing("the CPU manager is not static")
    return "named" if settings.get("reservedSystemCPUs") else "by number"


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("named"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "kubectl drain NODE; systemctl stop kubelet; rm /var/lib/kubelet/cpu_manager_state; write reservedSystemCPUs: LIST (some "
        "cores of each NUMA node) into /var/lib/kubelet/config.yaml; systemctl start kubelet; kubectl uncordon NODE"
    ),
    severity="info",
)

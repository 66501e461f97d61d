"""The kubelet shares all cores among all pods.

Why it matters: With the CPU manager's policy none a pod's threads move over all cores of the machine and compete with
other pods; the topology manager has no cores to align. static gives whole cores to guaranteed pods that ask for them.
Confirm by hand: grep cpuManagerPolicy /var/lib/kubelet/config.yaml
Side effects of the fix: Drain first. The kubelet does not start while the old cpu_manager_state is there, nor without
reserved cores. Only guaranteed pods with whole CPUs profit.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
"""

from nodetune.conditions import GPU_ON_PCI, KUBELET
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    """The policy; none where nothing sets it, which is the kubelet's documented default."""
    return str(facts["kubernetes.kubelet"]["settings"].get("cpuManagerPolicy", "none"))


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("static"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "kubectl drain NODE; systemctl stop kubelet; rm /var/lib/kubelet/cpu_manager_state; write cpuManagerPolicy: static and "
        "reservedSystemCPUs: LIST into /var/lib/kubelet/config.yaml; systemctl start kubelet; kubectl uncordon NODE"
    ),
    severity="low",
)

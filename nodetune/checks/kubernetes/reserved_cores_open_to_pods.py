"""Pods without cores of their own also run on the reserved cores.

Why it matters: reservedSystemCPUs keeps exclusive cores away from the system, but by default not pods of the classes
burstable and best effort. Their bursts delay the interrupts and services for which the cores were reserved. The option
strict-cpu-reservation of the static CPU manager keeps all pods off.
Healthy exception: Where only pods with whole cores run, nothing uses the reserved ones.
Confirm manually: grep -A3 cpuManagerPolicyOptions /var/lib/kubelet/config.yaml
Side effects of the fix: Drain the node first: the kubelet restarts without its cpu_manager_state. Other pods have fewer cores.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/ ;
https://www.kubernetes.dev/resources/keps/4540/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, Check, Equals, FactAbsentError, FactsView, manual

OPTION = "strict-cpu-reservation=true"


def observe(facts: FactsView) -> str:
    settings = facts["kubernetes.kubelet"]["settings"]
    if settings.get("cpuManagerPolicy") != "static" or not settings.get("reservedSystemCPUs"):
        raise FactAbsentError("no cores are reserved by name for a static CPU manager")
    return "system alone" if OPTION in settings.get("cpuManagerPolicyOptions", "").split(",") else "system and pods"


CHECK = Check(
    needs=("kubernetes.kubelet",),
    observe=observe,
    accept=Equals("system alone"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "From Kubernetes 1.33 on (an older kubelet does not start with it): kubectl drain NODE --ignore-daemonsets, and "
        "continue only if it succeeds. On the node: systemctl stop kubelet && rm -f /var/lib/kubelet/cpu_manager_state, write "
        'cpuManagerPolicyOptions: {strict-cpu-reservation: "true"} into /var/lib/kubelet/config.yaml, then systemctl start '
        "kubelet && kubectl uncordon NODE"
    ),
    severity="info",
)

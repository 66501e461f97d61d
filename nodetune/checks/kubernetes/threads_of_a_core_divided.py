"""The static CPU manager may give the two threads of a core to different pods.

Why it matters: Each thread of a core then has about half of its speed, and one pod slows the other. With the option
full-pcpus-only, a pod gets whole cores.
Healthy exception: full-pcpus-only refuses a pod that asks for an odd number of CPUs (SMTAlignmentError).
Confirm manually: grep -A3 cpuManagerPolicyOptions /var/lib/kubelet/config.yaml; cat /sys/devices/system/cpu/smt/active
Side effects of the fix: Drain the node first: the kubelet restarts without its cpu_manager_state. Pods that ask for half a core no longer fit.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/
"""

from nodetune.api import GPU_ON_PCI, KUBELET, Check, Equals, FactAbsentError, FactsView, manual

OPTION = "full-pcpus-only=true"


def observe(facts: FactsView) -> str:
    settings = facts["kubernetes.kubelet"]["settings"]
    if settings.get("cpuManagerPolicy") != "static":
        raise FactAbsentError("the CPU manager is not static")
    if facts["cpu.smt"] == "off":
        raise FactAbsentError("each core has one thread")
    return "whole cores" if OPTION in settings.get("cpuManagerPolicyOptions", "").split(",") else "single threads"


CHECK = Check(
    needs=("kubernetes.kubelet", "cpu.smt"),
    observe=observe,
    accept=Equals("whole cores"),
    applies=(KUBELET, GPU_ON_PCI),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: systemctl stop kubelet && "
        'rm -f /var/lib/kubelet/cpu_manager_state, write cpuManagerPolicyOptions: {full-pcpus-only: "true"} into '
        "/var/lib/kubelet/config.yaml, then systemctl start kubelet && kubectl uncordon NODE"
    ),
    severity="info",
)

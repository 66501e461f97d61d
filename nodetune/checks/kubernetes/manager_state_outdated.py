"""The state file of a kubelet's manager contradicts the configuration, so the kubelet does not start.

Why it matters: The kubelet remembers the policy of its CPU manager and memory manager in a file, and with the static policy
all CPUs of the node. It ends with an error at the next start if the policy or the CPUs that are online differ. The node is
then lost to the cluster until an operator removes the file.
Healthy exception: With strict-cpu-reservation the state lacks the reserved CPUs. The policy none remembers no CPUs.
Confirm manually: head -c 300 /var/lib/kubelet/cpu_manager_state; grep ManagerPolicy /var/lib/kubelet/config.yaml;
cat /sys/devices/system/cpu/online
Side effects of the fix: Drain the node first: pods lose the cores that they were given.
Sources: https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/#changing-the-cpu-manager-policy ;
https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/cm/cpumanager/policy_static.go (validateState)
"""

from __future__ import annotations

from nodetune.api import KUBELET, Absent, Check, Empty, FactsView, manual

POLICIES = {"cpu": "cpuManagerPolicy", "memory": "memoryManagerPolicy"}


def observe(facts: FactsView) -> dict[str, str] | Absent:
    """Return what is wrong, by manager. Flags of a kubelet that does not run are unknown."""
    kubelet, managers = facts["kubernetes.kubelet"], facts["kubernetes.managers"]
    found = {}
    for name, setting in POLICIES.items():
        wanted = kubelet["settings"].get(setting, "none" if kubelet["running"] else None)
        if name in managers and wanted is not None:
            is_now = managers[name]["policy"]
            other = is_now.lower() != wanted.lower()
            found[name] = f"policy {is_now}, {wanted} configured" if other else _cpus(facts, managers[name])
    return found or Absent("no manager of the kubelet has a state")


def _cpus(facts: FactsView, state: dict[str, str]) -> str:
    """Return the CPUs that the state lacks, and those that are no longer online."""
    from nodetune.onhost import cpu_list  # here: most hosts have no kubelet

    known = set(cpu_list.parse_or_empty(state.get("cpus", "")))
    if not known or state["policy"] != "static":
        return ""
    online = set(cpu_list.parse(facts["cpu.online"]))
    reserved = facts["kubernetes.kubelet"]["settings"].get("reservedSystemCPUs", "")
    lacks, gone = online - known - set(cpu_list.parse_or_empty(reserved)), known - online
    return ", ".join(
        f"{word} {cpu_list.fold(each)}" for word, each in (("lacks CPUs", lacks), ("has offline CPUs", gone)) if each
    )


CHECK = Check(
    needs=("kubernetes.kubelet", "kubernetes.managers", "cpu.online"),
    observe=observe,
    accept=Empty("the configured policy and the CPUs that are online"),
    applies=(KUBELET,),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: systemctl stop kubelet && "
        "rm -f /var/lib/kubelet/cpu_manager_state (memory: memory_manager_state), then systemctl start kubelet && "
        "kubectl uncordon NODE. Or bring the old policy back, or the CPUs online."
    ),
    severity="medium",
)

"""The kubelet and the container runtime use different cgroup drivers.

Why it matters: One lets systemd make the cgroups, the other makes them itself. Either pods do not start ("expected
cgroupsPath to be of format slice:prefix:name"), or they run outside the group of their pod: its limits and shares do not
hold, and systemd may move the processes.
Healthy exception: From version 1.31 on, a kubelet asks containerd 2 or CRI-O for its driver and ignores its own setting.
Confirm manually: grep cgroupDriver /var/lib/kubelet/config.yaml; grep -r SystemdCgroup /etc/containerd;
crio config 2>/dev/null | grep cgroup_manager
Side effects of the fix: Drain the node first: containers must be made again.
Sources: https://kubernetes.io/docs/setup/production-environment/container-runtimes/#cgroup-drivers ;
https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/configure-cgroup-driver/
"""

from __future__ import annotations

from nodetune.api import KUBELET, Check, Empty, FactAbsentError, FactsView, manual

CONTAINERD_2 = 3
"""The version of the configuration that containerd 1 does not understand."""


def observe(facts: FactsView) -> str:
    kubelet, containerd = facts["kubernetes.kubelet"], facts["containers.containerd"]
    endpoint = kubelet["settings"].get("containerRuntimeEndpoint", "containerd")
    if not kubelet["running"] or "containerd" not in endpoint:
        raise FactAbsentError("no running kubelet that uses containerd")
    if containerd["systemd_cgroup"] is None or containerd.get("config_version", CONTAINERD_2) >= CONTAINERD_2:
        raise FactAbsentError("containerd's file does not say, or the kubelet asks containerd")
    own = kubelet["settings"].get("cgroupDriver", "cgroupfs")
    runtime = "systemd" if containerd["systemd_cgroup"] else "cgroupfs"
    return "" if own == runtime else f"kubelet {own}, containerd {runtime}"


CHECK = Check(
    needs=("kubernetes.kubelet", "containers.containerd"),
    observe=observe,
    accept=Empty("the same driver"),
    applies=(KUBELET,),
    remedy=manual(
        "kubectl drain NODE --ignore-daemonsets, and continue only if it succeeds. On the node: write SystemdCgroup = true under "
        "the options of each runtime in /etc/containerd/config.toml and cgroupDriver: systemd into "
        "/var/lib/kubelet/config.yaml, then systemctl restart containerd kubelet && kubectl uncordon NODE"
    ),
    severity="low",
)

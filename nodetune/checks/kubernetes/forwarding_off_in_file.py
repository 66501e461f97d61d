"""A file turns the forwarding of packets off, which the pods of this node use.

Why it matters: Network plugins turn forwarding on when they start. A line with net.ipv4.ip_forward = 0 in sysctl.d turns it
off again at the next sysctl --system, and tuned reads these files after each change of profile. Pods on this node then reach
nothing outside of it until the plugin starts again, while jobs run.
Healthy exception: Where forwarding is off now, it is off on purpose: OVN-Kubernetes turns it on for some links alone, and a
cluster with IPv6 needs net.ipv6.conf.all.forwarding.
Confirm manually: sysctl net.ipv4.ip_forward; grep -rn ip_forward /etc/sysctl.conf /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d
Side effects of the fix: None now. A rollback would bring the line back and cut pods off, so the fix is left to you.
Sources: https://github.com/redhat-performance/tuned/issues/816 ; https://github.com/redhat-performance/tuned/pull/536 ;
https://kubernetes.io/docs/setup/production-environment/container-runtimes/
"""

from __future__ import annotations

from nodetune.api import KUBELET, Check, Empty, FactAbsentError, FactsView, manual

NOW, LATER = "sysctl.net.ipv4.ip_forward", "persisted.sysctl.net.ipv4.ip_forward"


def observe(facts: FactsView) -> str:
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    if facts[NOW] == 0:
        raise FactAbsentError("packets are not forwarded on all links")
    later = facts.get(LATER, {})
    if later.get("value") != 0:
        return ""
    return f"off in {later['file']}" + (f", line {later['line']}" if later.get("line") else "")


CHECK = Check(
    needs=("kubernetes.kubelet", NOW, LATER),
    observe=observe,
    accept=Empty("forwarding on"),
    applies=(KUBELET,),
    remedy=manual(
        "Remove the line, or write net.ipv4.ip_forward = 1 into /etc/sysctl.d/99-kubernetes.conf, then read back what wins: "
        "systemd-analyze cat-config sysctl.d | grep ip_forward. Leave forwarding on (sysctl -w net.ipv4.ip_forward=1) when "
        "tuned or another tool is taken away."
    ),
    severity="medium",
)

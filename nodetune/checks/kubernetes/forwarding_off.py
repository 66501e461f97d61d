"""The kernel does not forward the packets of pods, or a file turns forwarding off.

Why it matters: Pods on this node reach nothing outside of it, and their traffic is dropped without an error. Network
plugins turn forwarding on when they start. A line with net.ipv4.ip_forward = 0 in sysctl.d, or in tuned, turns it off again
at the next sysctl --system or change of profile, while jobs run.
Healthy exception: In a cluster with IPv6 alone, net.ipv6.conf.all.forwarding counts. A kubelet that does not run needs neither.
Confirm manually: sysctl net.ipv4.ip_forward; grep -rn ip_forward /etc/sysctl.conf /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d
Side effects of the fix: The host routes between its networks, as every Kubernetes node does. A rollback that sets it back to 0
would cut pods off, so it is left to you.
Sources: https://kubernetes.io/docs/setup/production-environment/container-runtimes/#prerequisite-ipv4-forwarding-optional ;
https://github.com/redhat-performance/tuned/issues/816
"""

from __future__ import annotations

from nodetune.api import KUBELET, Check, Empty, FactAbsentError, FactsView, manual

NOW, LATER = "sysctl.net.ipv4.ip_forward", "persisted.sysctl.net.ipv4.ip_forward"
IPV6 = "sysctl.net.ipv6.conf.all.forwarding"


def observe(facts: FactsView) -> dict[str, str]:
    if not facts["kubernetes.kubelet"]["running"]:
        raise FactAbsentError("the kubelet is not running")
    if facts[NOW] == 0 and facts.readable(IPV6) == 1:
        raise FactAbsentError("only IPv6 is forwarded")
    later = facts.get(LATER, {})
    place = f"{later['file']}:{later['line']}" if later.get("line") else later.get("file", "")
    return {"now": "" if facts[NOW] else "off", "at boot": f"off in {place}" if later.get("value") == 0 else ""}


CHECK = Check(
    needs=("kubernetes.kubelet", NOW, LATER, IPV6),
    observe=observe,
    accept=Empty("forwarding on"),
    applies=(KUBELET,),
    remedy=manual(
        "sysctl -w net.ipv4.ip_forward=1, write the line net.ipv4.ip_forward = 1 into /etc/sysctl.d/99-kubernetes.conf, and "
        "remove the line that sets 0. Leave it on when tuned or another tool is taken away."
    ),
    severity="medium",
)

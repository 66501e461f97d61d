"""A network card has more queues than its NUMA node has CPUs.

Why it matters: Queues beyond the CPUs next to the card are served across the socket link. They spread the same traffic
thinner: more interrupts for the same packets. Fewer queues with local interrupts do the same work.
Confirm manually: ethtool -l eth0; cat /sys/class/net/eth0/device/local_cpulist
Side effects of the fix: The link restarts; interrupts must be placed again.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (CombinedChannels=) ;
https://docs.kernel.org/networking/scaling.html
"""

from nodetune.api import SEVERAL_NUMA_NODES, AtMost, Check, FactsView, Ref, manual
from nodetune.checks.shared.network_links import fast


def observe(facts: FactsView) -> dict[str, int]:
    channels, local = facts["net.channels"], facts["net.local_cpus"]
    links = [name for name in fast(facts["net.links"]) if name in channels and name in local]
    return {name: channels[name]["combined"] for name in links}


CHECK = Check(
    needs=("net.links", "net.channels", "net.local_cpus"),
    observe=observe,
    accept=AtMost(Ref("net.local_cpus")),
    applies=(SEVERAL_NUMA_NODES,),
    unit="queues",
    remedy=manual(
        "ethtool -L LINK combined N with N = the CPUs of the card's node. Keep it with CombinedChannels=N in a file "
        "/etc/systemd/network/*.link, or nmcli con mod NAME ethtool.channels-combined N."
    ),
    severity="info",
    cost="setting",
)

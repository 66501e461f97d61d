"""NCCL_SOCKET_IFNAME or NCCL_OOB_NET_IFNAME does not match this host.

Why it matters: Every job, on InfiniBand too, bootstraps over these sockets. A name that exists on some nodes only makes
start-up fail or hang. NCCL reads ^ and = only at the very start of the value and applies them to every token, so
"eth0,^docker" excludes nothing. Without =, eth1 also matches eth10. An exclusion replaces NCCL's own avoidance of lo
and docker0.
Healthy exception: An exclusion that names lo and docker itself leaves the right interfaces. In a list of prefixes for many kinds
of hosts (en,eth,bond), NCCL ignores those that match nothing here.
Confirm manually: ip -br link; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET all_reduce_perf -b 8 -e 8 -g 1 | grep -iE "NET/Socket|Bootstrap"
Side effects of the fix: New jobs use other interfaces. Check that they can reach one another.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname ;
https://github.com/NVIDIA/nccl (src/misc/socket.cc, src/os/linux.cc)
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.nccl._interfaces import wrong


def wrong_interfaces(facts: FactsView) -> Any:
    return wrong(facts["nccl.settings"], facts["net.links"]) or []


CHECK = Check(
    needs=("nccl.settings", "net.links"),
    observe=wrong_interfaces,
    accept=Empty("exact names of interfaces of this host"),
    remedy=manual(
        "Write the value as =NAME[,NAME] with names from ip -br link that exist on every node, or as ^lo,docker,NAME to "
        "exclude. In nccl.conf the line is NCCL_SOCKET_IFNAME==eth0. Without the line NCCL selects the interface."
    ),
    severity="high",
)

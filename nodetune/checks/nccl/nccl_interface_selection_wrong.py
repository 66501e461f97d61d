"""The choice of network interfaces for NCCL does not fit this host.

Why it matters: Every job, on InfiniBand too, meets over these sockets. A name that exists on some nodes only makes
start-up fail or hang. ^ and = are read only at the very start of the value and then for every token, so that
"eth0,^docker" excludes nothing; without =, eth1 means eth10 too; and an exclusion replaces NCCL's own avoidance of lo
and docker0.
Confirm by hand: ip -br link; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET all_reduce_perf -b 8 -e 8 -g 1 | grep -iE "NET/Socket|Bootstrap"
Side effects of the fix: Jobs that start from then on use other interfaces: check that they reach one another.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname ;
https://github.com/NVIDIA/nccl (src/misc/socket.cc, src/os/linux.cc)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import interfaces
from nodetune.remedies import manual
from nodetune.view import View


def wrong_interfaces(facts: View) -> Any:
    return interfaces.wrong(facts["nccl.settings"], facts["net.links"]) or []


CHECK = Check(
    needs=("nccl.settings", "net.links"),
    observe=wrong_interfaces,
    accept=Empty("a choice that names interfaces of this host, exactly"),
    remedy=manual(
        "Write the choice as =NAME[,NAME] with names from ip -br link that exist on every node, or as ^lo,docker,NAME to "
        "exclude; in nccl.conf that gives NCCL_SOCKET_IFNAME==eth0. Without the line NCCL chooses by itself."
    ),
    severity="high",
)

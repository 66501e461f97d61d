"""The queue between network drivers and the protocol stack is short.

Why it matters: Packets that one CPU hands to another (receive packet steering, container links, loopback) wait in a
queue of net.core.netdev_max_backlog entries; what does not fit is dropped, and TCP slows down. The kernel's 1000 are
from the days of 1 Gb/s. A driver that is polled (NAPI) without steering does not use this queue.
Confirm by hand: sysctl net.core.netdev_max_backlog; awk '{print $2}' /proc/net/softnet_stat
Side effects of the fix: A burst may wait longer in the queue instead of being dropped.
Sources: https://docs.kernel.org/admin-guide/sysctl/net.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.checks.network._links import fast
from nodetune.expect import AtLeast
from nodetune.model import Absent, Check, Value
from nodetune.remedies import sysctl
from nodetune.view import View


def observe(facts: View) -> Value | Absent:
    if not fast(facts["net.links"]):
        return Absent("no Ethernet link of 10 Gb/s or more")
    return Value(facts["sysctl.net.core.netdev_max_backlog"])


CHECK = Check(
    needs=("net.links", "sysctl.net.core.netdev_max_backlog"),
    observe=observe,
    accept=AtLeast(16384),
    set=16384,
    unit="packets",
    remedy=sysctl("net.core.netdev_max_backlog", boot_default=1000),
    severity="info",
)

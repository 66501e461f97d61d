"""net.core.netdev_max_backlog is too low for the link.

Why it matters: Packets that one CPU passes to another (receive packet steering, container links, loopback) wait in a
queue of net.core.netdev_max_backlog entries. Packets that do not fit are dropped, and TCP slows down. The kernel's
default of 1000 dates from the days of 1 Gb/s. A driver that polls (NAPI) without steering does not use this queue.
Confirm manually: sysctl net.core.netdev_max_backlog; awk '{print $2}' /proc/net/softnet_stat
Side effects of the fix: A burst may wait longer in the queue instead of being dropped.
Sources: https://docs.kernel.org/admin-guide/sysctl/net.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import Absent, AtLeast, Check, FactsView, Value, sysctl
from nodetune.checks.network._links import fast


def observe(facts: FactsView) -> Value | Absent:
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

"""net.core.netdev_max_backlog is too low for the link.

Why it matters: Packets that one CPU passes to another (receive packet steering, container links, loopback) wait in a
queue of net.core.netdev_max_backlog entries. Packets that do not fit are dropped, and TCP slows down. The kernel's
default of 1000 dates from the days of 1 Gb/s. A driver that polls (NAPI) without steering does not use this queue: the
check judges only hosts that dropped packets there (input-queue-drops), and values below that default.
Confirm manually: sysctl net.core.netdev_max_backlog; awk '{print $2}' /proc/net/softnet_stat
Side effects of the fix: A burst may wait longer in the queue instead of being dropped.
Sources: https://docs.kernel.org/admin-guide/sysctl/net.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from __future__ import annotations

from nodetune.api import Absent, AtLeast, Check, FactsView, Value, sysctl
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT, fast

KERNEL_DEFAULT = 1000


def observe(facts: FactsView) -> Value | Absent:
    if not fast(facts["net.links"]):
        return Absent("no Ethernet link of 10 Gb/s or more")
    setting, packets = facts["sysctl.net.core.netdev_max_backlog"], facts["tcp.softnet"]
    if setting >= KERNEL_DEFAULT and _few_dropped(packets):
        return Absent("the queue dropped no packets")
    return Value(setting)


def _few_dropped(packets: dict[str, int]) -> bool:
    return packets["dropped"] < DROPS_LEAST or packets["dropped"] <= DROPS_LIMIT * packets["processed"]


CHECK = Check(
    needs=("net.links", "tcp.softnet", "sysctl.net.core.netdev_max_backlog"),
    observe=observe,
    accept=AtLeast(16384),
    set=16384,
    unit="packets",
    remedy=sysctl("net.core.netdev_max_backlog", boot_default=KERNEL_DEFAULT),
    part_of="input-queue-drops",
    severity="info",
)

"""net.ipv4.conf.*.arp_ignore is too low for links in one subnet.

Why it matters: With several links in one subnet and arp_ignore=0, any of them answers for any address. Peers then send
a whole rail's traffic to one port while others idle, and the port changes from run to run. One subnet per link avoids
this.
Confirm manually: sysctl -a --pattern 'net.ipv4.conf.*.arp_ignore$'
Side effects of the fix: A link no longer answers for addresses of the others; routers that relied on it must learn the right one.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (the larger of conf/all and conf/LINK counts)
"""

from __future__ import annotations

from nodetune.api import Absent, AtLeast, Check, FactsView, sysctl
from nodetune.checks.shared.network_links import conf_of_shared_subnets


def observe(facts: FactsView) -> dict[str, int] | Absent:
    return conf_of_shared_subnets(facts, "arp_ignore")


CHECK = Check(
    needs=("net.links", "net.subnets", "net.ipv4_conf"),
    observe=observe,
    accept=AtLeast(1),
    set=1,
    remedy=sysctl("net.ipv4.conf.all.arp_ignore"),
    severity="medium",
)

"""net.ipv4.conf.*.arp_announce is too low for links in one subnet.

Why it matters: With several links in one subnet and arp_announce below 2, a link may use another link's address in its
ARP requests. Peers then store the wrong hardware address and send that address's traffic to the wrong port.
Confirm manually: sysctl -a --pattern 'net.ipv4.conf.*.arp_announce$'
Side effects of the fix: ARP requests carry the address of the link that they leave by.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (the larger of conf/all and conf/LINK counts)
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Equals, FactsView, sysctl
from nodetune.checks.shared.network_links import conf_of_shared_subnets


def observe(facts: FactsView) -> dict[str, int] | Absent:
    return conf_of_shared_subnets(facts, "arp_announce")


CHECK = Check(
    needs=("net.links", "net.subnets", "net.ipv4_conf"),
    observe=observe,
    accept=Equals(2),
    set=2,
    remedy=sysctl("net.ipv4.conf.all.arp_announce"),
    part_of="arp-answered-by-any-link",
    severity="medium",
)

"""net.ipv4.conf.*.rp_filter is strict on links in one subnet.

Why it matters: With several links in one subnet, the route back to a peer uses only one of them. The strict reverse
path filter (1) drops packets that arrive on the others: some pairs of hosts cannot connect, or the connection setup of
RoCE times out. Loose mode (2) still refuses forged sources. One subnet per link is better still.
Confirm manually: sysctl -a --pattern 'net.ipv4.conf.*.rp_filter$'
Side effects of the fix: Packets are accepted on any link that has a route to their source. Set it for the links, not for
"all": Calico's agent does not start where net.ipv4.conf.all.rp_filter is 2.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (the larger of conf/all and conf/LINK counts) ;
https://docs.tigera.io/calico/latest/reference/felix/configuration (IgnoreLooseRPF)
"""

from __future__ import annotations

from nodetune.api import Absent, Check, FactsView, OneOf, manual
from nodetune.checks.shared.network_links import conf_of_shared_subnets


def observe(facts: FactsView) -> dict[str, int] | Absent:
    return conf_of_shared_subnets(facts, "rp_filter")


CHECK = Check(
    needs=("net.links", "net.subnets", "net.ipv4_conf"),
    observe=observe,
    accept=OneOf([0, 2]),
    remedy=manual(
        "For each link named: sysctl -w net.ipv4.conf.LINK.rp_filter=2, and the same line in a file in /etc/sysctl.d. "
        "Leave net.ipv4.conf.all.rp_filter at 0 or 1. Better: one subnet for each link."
    ),
    severity="medium",
    name="rp_filter",
)

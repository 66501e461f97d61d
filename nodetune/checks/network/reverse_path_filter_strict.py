"""Links that share a subnet drop packets that arrive on the "wrong" one.

Why it matters: With several links in one subnet the route back to a peer leaves by one of them only. The strict reverse
path filter (1) then drops what arrives on the others: some pairs of hosts cannot connect, or RoCE's connection setup
times out. Loose (2) still refuses forged sources; better still is one subnet per link.
Confirm by hand: sysctl -a --pattern 'net.ipv4.conf.*.rp_filter$'
Side effects of the fix: Packets are accepted on any link that has a route to their source. Set it for the links, not for
"all": Calico's agent does not start where net.ipv4.conf.all.rp_filter is 2.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (the larger of conf/all and conf/LINK counts) ;
https://docs.tigera.io/calico/latest/reference/felix/configuration (IgnoreLooseRPF)
"""

from nodetune.checks.network._links import conf_of_shared_subnets
from nodetune.expect import OneOf
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int] | Absent:
    return conf_of_shared_subnets(facts, "rp_filter")


CHECK = Check(
    needs=("net.links", "net.subnets", "net.ipv4_conf"),
    observe=observe,
    accept=OneOf([0, 2]),
    remedy=manual(
        "For each link named: sysctl -w net.ipv4.conf.LINK.rp_filter=2, and the same line in a file of /etc/sysctl.d. Leave "
        "net.ipv4.conf.all.rp_filter at 0 or 1. Better: one subnet for each link."
    ),
    severity="medium",
)

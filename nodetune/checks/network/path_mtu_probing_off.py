"""net.ipv4.tcp_mtu_probing is off on a host with jumbo frames.

Why it matters: If one switch or tunnel on the path takes only small frames and its "too big" message is filtered,
connections open and then hang at the first full frame. With probing, TCP finds a size that passes. Mode 1 acts only
after such a hang, so it costs almost nothing on a healthy path.
Confirm manually: sysctl net.ipv4.tcp_mtu_probing
Side effects of the fix: A connection that stalls for other reasons may fall back to small segments for a while.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://www.rfc-editor.org/rfc/rfc4821 ;
https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import Absent, Check, FactsView, OneOf, Value, sysctl
from nodetune.checks.network._links import in_use


def observe(facts: FactsView) -> Value | Absent:
    if all(link["mtu"] <= 1500 for link in in_use(facts["net.links"]).values()):
        return Absent("no link uses jumbo frames")
    return Value(facts["sysctl.net.ipv4.tcp_mtu_probing"])


CHECK = Check(
    needs=("net.links", "sysctl.net.ipv4.tcp_mtu_probing"),
    observe=observe,
    accept=OneOf([1, 2]),
    set=1,
    remedy=sysctl("net.ipv4.tcp_mtu_probing", boot_default=0),
    severity="low",
)

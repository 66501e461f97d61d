"""net.ipv4.tcp_mtu_probing is off on a host with jumbo frames.

Why it matters: If one switch or tunnel on the path takes only small frames and its "too big" message is filtered,
connections open and then hang at the first full frame. With probing, TCP finds a size that passes. Mode 1 acts only
after such a hang, so it costs almost nothing on a healthy path. The check judges only hosts whose default route leaves
by a link with jumbo frames: on a network of its own, each path takes them.
Confirm manually: sysctl net.ipv4.tcp_mtu_probing
Side effects of the fix: A connection that stalls for other reasons may fall back to small segments for a while.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://www.rfc-editor.org/rfc/rfc4821 ;
https://fasterdata.es.net/host-tuning/linux/
"""

from __future__ import annotations

from nodetune.api import Absent, Check, FactsView, OneOf, Value, sysctl

ETHERNET_MTU = 1500


def observe(facts: FactsView) -> Value | Absent:
    link = facts["net.links"].get(facts["net.default_interface"], {})
    if link.get("mtu", 0) <= ETHERNET_MTU:
        return Absent("the default route uses no jumbo frames")
    return Value(facts["sysctl.net.ipv4.tcp_mtu_probing"])


CHECK = Check(
    needs=("net.links", "net.default_interface", "sysctl.net.ipv4.tcp_mtu_probing"),
    observe=observe,
    accept=OneOf([1, 2]),
    set=1,
    remedy=sysctl("net.ipv4.tcp_mtu_probing", boot_default=0),
    severity="low",
)

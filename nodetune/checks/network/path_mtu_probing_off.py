"""Jumbo frames are in use, and TCP does not recover from a path that drops them silently.

Why it matters: Where one switch or tunnel on the way takes only small frames and its "too big" message is filtered,
connections open and then hang at the first full frame. With probing TCP finds a size that passes. It acts only after
such a hang (1), so it costs next to nothing where all is well.
Confirm by hand: sysctl net.ipv4.tcp_mtu_probing
Side effects of the fix: A connection that stalls for other reasons may fall back to small segments for a while.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://www.rfc-editor.org/rfc/rfc4821 ;
https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.checks.network._links import in_use
from nodetune.expect import OneOf
from nodetune.model import Absent, Check, Value
from nodetune.remedies import sysctl
from nodetune.view import View


def observe(facts: View) -> Value | Absent:
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

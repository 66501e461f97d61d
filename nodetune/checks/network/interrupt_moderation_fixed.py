"""A network card does not adapt its interrupt rate to the traffic.

Why it matters: With adaptive moderation the driver interrupts at once when packets are few and gathers them when
they are many. A fixed rate is either late for the one or too busy for the other; training nodes see both.
Confirm by hand: ethtool -c eth0
Side effects of the fix: None lasting. A latency-bound service may want a fixed low rate instead.
Sources: https://docs.kernel.org/networking/net_dim.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (UseAdaptiveRxCoalesce=)
"""

from nodetune.checks.network._links import fast
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import net_link
from nodetune.view import View

ABLE = ("mlx5_core", "bnxt_en", "ice", "i40e")
"""Drivers that can; the others report "off" for want of it."""


def observe(facts: View) -> dict[str, bool]:
    coalescing = facts["net.coalescing"]
    links = {name: link for name, link in fast(facts["net.links"]).items() if link["driver"] in ABLE}
    return {name: coalescing[name]["adaptive_rx"] for name in links if name in coalescing}


CHECK = Check(
    needs=("net.links", "net.coalescing"),
    observe=observe,
    accept=Equals(wanted=True),
    set=True,
    remedy=net_link("adaptive-rx", disruption="none"),
    severity="low",
)

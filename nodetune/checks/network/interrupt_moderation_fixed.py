"""Adaptive interrupt moderation is off on a network card.

Why it matters: With adaptive moderation, the driver interrupts at once when packets are few and batches them when they
are many. A fixed rate is too late for the one or too frequent for the other. Training nodes have both kinds of
traffic.
Confirm manually: ethtool -c eth0
Side effects of the fix: None lasting. A latency-bound service may want a fixed low rate instead.
Sources: https://docs.kernel.org/networking/net_dim.html ;
https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (UseAdaptiveRxCoalesce=)
"""

from nodetune.api import Check, Equals, FactsView, net_link
from nodetune.checks.shared.network_links import fast

ABLE = ("mlx5_core", "bnxt_en", "ice", "i40e")
"""Drivers that support it; the others always report "off"."""


def observe(facts: FactsView) -> dict[str, bool]:
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

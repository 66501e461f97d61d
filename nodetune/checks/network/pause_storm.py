"""A network card sent pause frames until its own time limit stopped them.

Why it matters: The host or the card's PCIe slot did not take the data. The card held the switch back for so long that it
took this for a fault and stopped pausing; packets that arrived then were lost. While a card pauses, congestion spreads
over the switch to other hosts of the lossless class.
Confirm manually: ethtool -S LINK | grep pause_storm
Side effects of the fix: None: it only reports.
Sources: https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html
(tx_pause_storm_error_events)
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Equals, FactsView, manual
from nodetune.checks.shared.network_links import in_use

COUNTER = "tx_pause_storm_error_events"


def observe(facts: FactsView) -> dict[str, int] | Absent:
    counted = facts["net.counters"]
    found = {name: counted[name][COUNTER] for name in in_use(facts["net.links"]) if COUNTER in counted.get(name, {})}
    return found or Absent("no link counts pause storms")


CHECK = Check(
    needs=("net.links", "net.counters"),
    observe=observe,
    accept=Equals(0),
    unit="events since the driver was loaded",
    remedy=manual(
        "See whether the counter grows under load. Then look for what stops the receiver: the card's PCIe link (width, "
        "generation), a process that was stopped or hung while it held its queue pairs, or IOMMU translation. Read the "
        "kernel log of that time."
    ),
    severity="medium",
)

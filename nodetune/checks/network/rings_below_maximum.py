"""A data link's rings hold fewer packets than the card can.

Why it matters: The receive ring is all that catches packets while the CPU is busy elsewhere. At 100 Gb/s a ring of
1024 full frames lasts 0.1 ms; what comes after is dropped and TCP backs off. RDMA traffic does not use these rings.
Confirm by hand: ethtool -g eth0
Side effects of the fix: Most drivers restart the link; each queue's ring takes more memory, and latency under load
may rise.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (RxBufferSize=) ;
https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.checks.network._links import fast
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import net_link
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    rings = facts["net.rings"]
    return {name: _short(rings[name]) for name in fast(facts["net.links"]) if name in rings}


def _short(ring: dict[str, int]) -> str:
    """Below half of what the card offers: the last doubling rarely matters."""
    if all(ring[way] * 2 >= ring[way + "_max"] for way in ("rx", "tx")):
        return ""
    return f"rx {ring['rx']} of {ring['rx_max']}, tx {ring['tx']} of {ring['tx_max']}"


CHECK = Check(
    needs=("net.links", "net.rings"),
    observe=observe,
    accept=Empty("at least half of the maximum"),
    set="max",
    remedy=net_link("rings"),
    severity="low",
)

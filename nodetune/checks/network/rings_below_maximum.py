"""The ring buffers of a network card are below their maximum.

Why it matters: Only the receive ring holds packets while the CPU is busy elsewhere. At 100 Gb/s, a ring of 1024 full
frames lasts 0.1 ms; later packets are dropped, and TCP backs off. RDMA traffic does not use these rings.
The check judges only links that missed packets (receive-overruns), and rings of 256 frames and fewer.
Confirm manually: ethtool -g eth0
Side effects of the fix: Most drivers restart the link; each queue's ring takes more memory, and latency under load
may rise.
Sources: https://www.freedesktop.org/software/systemd/man/latest/systemd.link.html (RxBufferSize=) ;
https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import Check, Empty, FactsView, net_link
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT, fast, lost_share

MISSED = lost_share("rx_missed_errors", least=DROPS_LEAST, limit=DROPS_LIMIT, words="packets missed")
TINY = 256
"""At 100 Gb/s, this many full frames arrive in 0.03 ms: no count of lost packets is needed."""


def observe(facts: FactsView) -> dict[str, str]:
    rings, missed = facts["net.rings"], MISSED(facts)
    return {
        name: _short(rings[name]) if missed.get(name) or rings[name]["rx"] <= TINY else ""
        for name in fast(facts["net.links"])
        if name in rings
    }


def _short(ring: dict[str, int]) -> str:
    """Report rings below half of the card's maximum: the last doubling rarely matters."""
    if all(ring[each] * 2 >= ring[each + "_max"] for each in ("rx", "tx")):
        return ""
    return f"rx {ring['rx']} of {ring['rx_max']}, tx {ring['tx']} of {ring['tx_max']}"


CHECK = Check(
    needs=("net.links", "net.rings", "net.statistics"),
    observe=observe,
    accept=Empty("at least half of the maximum where packets are missed, and more than 256 frames"),
    set="max",
    remedy=net_link("rings"),
    part_of="receive-overruns",
    severity="low",
)

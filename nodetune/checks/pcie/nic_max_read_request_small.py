"""MaxReadReq of a 400 Gb/s network card is too small.

Why it matters: The card fetches the data that it sends with PCIe read requests. With a maximum read request of 512
bytes, it needs eight times as many requests as with 4096. At 400 Gb/s, the number of requests in flight can become the
limit.
Confirm manually: lspci -vv -s BDF | grep MaxReadReq
Side effects of the fix: Very large requests of one card can delay others behind the same port. The setting is lost at
the next boot unless a unit sets it again.
Sources: https://enterprise-support.nvidia.com/s/article/understanding-pcie-configuration-for-maximum-performance ;
https://man7.org/linux/man-pages/man8/setpci.8.html
"""

from nodetune.api import BARE_METAL, AtLeast, Check, FactsView, manual
from nodetune.checks.shared.pci_devices import mellanox_cards


def observe(facts: FactsView) -> dict[str, int]:
    cards = mellanox_cards(facts["pci.devices"])
    fast = [
        bdf for bdf, each in cards.items() if (each["link_speed_gts"] or 0) >= 32 and (each["link_width"] or 0) >= 16
    ]
    if not fast:
        return {}
    settings = facts["pci.config"]
    return {bdf: settings[bdf]["max_read_request"] for bdf in fast if bdf in settings}


CHECK = Check(
    needs=("pci.devices", "pci.config"),
    observe=observe,
    accept=AtLeast(4096),
    unit="bytes",
    applies=(BARE_METAL,),
    remedy=manual(
        "Change only bits 14-12 of the device control register: setpci -s BDF CAP_EXP+8.w=5000:7000 (the mask keeps "
        "the other bits). To make it permanent, run that from a unit at boot, or set the read request size in the "
        "firmware setup."
    ),
    severity="low",
    name="MaxReadReq",
)

"""PCIe relaxed ordering is off on a network card.

Why it matters: Without relaxed ordering, writes must reach memory in the order in which they were sent, and a transfer
into GPU memory waits behind unrelated ones. NCCL requests relaxed ordering wherever the card supports it. The bit in
the card's PCIe settings must allow it too.
Confirm manually: lspci -vv -s BDF | grep RlxdOrd   (RlxdOrd+ is on)
Side effects of the fix: Some old root ports handle it badly, and Linux then switches it off itself: leave it off
there.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_IB_PCI_RELAXED_ORDERING) ;
https://man7.org/linux/man-pages/man8/setpci.8.html
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, Check, Equals, FactsView, manual
from nodetune.checks.shared.pci_devices import mellanox_cards


def observe(facts: FactsView) -> dict[str, bool]:
    cards = mellanox_cards(facts["pci.devices"])
    if not cards:
        return {}
    settings = facts["pci.config"]
    return {bdf: settings[bdf]["relaxed_ordering"] for bdf in cards if bdf in settings}


CHECK = Check(
    needs=("pci.devices", "pci.config"),
    observe=observe,
    accept=Equals(wanted=True),
    applies=(BARE_METAL, GPU_ON_PCI),
    remedy=manual(
        "Switch relaxed ordering on in the firmware setup. To try it first: setpci -s BDF CAP_EXP+8.w=0010:0010 sets "
        "only this bit, until the next boot."
    ),
    severity="low",
    name="relaxed ordering",
)

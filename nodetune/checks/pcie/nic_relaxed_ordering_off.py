"""A network card may not use PCIe relaxed ordering.

Why it matters: Without it, writes into memory must arrive in the order in which they were sent, and a transfer into GPU
memory waits behind unrelated ones. NCCL asks for relaxed ordering wherever the card can do it; the bit in the card's PCIe
settings must allow it too.
Confirm by hand: lspci -vv -s BDF | grep RlxdOrd   (RlxdOrd+ is on)
Side effects of the fix: Some old root ports handle it badly, and Linux then switches it off itself: leave it off there.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (NCCL_IB_PCI_RELAXED_ORDERING) ;
https://man7.org/linux/man-pages/man8/setpci.8.html
"""

from nodetune.checks.pcie._devices import mellanox_cards
from nodetune.conditions import BARE_METAL, GPU_ON_PCI
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, bool]:
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
        "Switch relaxed ordering on in the firmware set-up. To try it first: setpci -s BDF CAP_EXP+8.w=0010:0010 sets only this "
        "bit, until the next boot."
    ),
    severity="low",
)

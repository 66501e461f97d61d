"""A GPU, NIC, drive or bridge no longer answers on the PCI bus.

Why it matters: Its configuration space reads as all ones: the device has fallen off the bus or lost power. For a GPU the
driver logs XID 79; programs that use it hang or die, and commands that ask it may hang too.
Confirm by hand: lspci -s BDF -x | head -2   (rev ff, ff ff ff ff)
Side effects of the fix: A power cycle ends everything that runs on the node.
Sources: https://docs.nvidia.com/deploy/xid-errors/index.html ; https://docs.kernel.org/PCI/pci-error-recovery.html
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    return {bdf: "" if answers else "does not answer" for bdf, answers in facts["pci.answers"].items()}


CHECK = Check(
    needs=("pci.answers",),
    observe=observe,
    accept=Empty("an answer"),
    remedy=manual(
        "Drain the node and save the logs (nvidia-bug-report.sh, dmesg). Power-cycle it fully (off, not a warm reboot). If the "
        "device stays away or falls off again, reseat it and check its power cables, then have it replaced."
    ),
    severity="critical",
)

"""A GPU, NIC, drive or bridge does not answer on the PCI bus.

Why it matters: The configuration space of the device reads as all ones: it has fallen off the bus or lost power. For a
GPU, the driver logs Xid 79. Programs that use the device hang or die, and commands that query it may hang too.
Confirm manually: lspci -s BDF -x | head -2   (rev ff, ff ff ff ff)
Side effects of the fix: A power cycle ends everything that runs on the node.
Sources: https://docs.nvidia.com/deploy/xid-errors/index.html ; https://docs.kernel.org/PCI/pci-error-recovery.html
"""

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    return {bdf: "" if answers else "does not answer" for bdf, answers in facts["pci.answers"].items()}


CHECK = Check(
    needs=("pci.answers",),
    observe=observe,
    accept=Empty("an answer"),
    remedy=manual(
        "Drain the node and save the logs (nvidia-bug-report.sh, dmesg). Power-cycle it fully (off, not a warm "
        "reboot). If the device stays missing or falls off again, reseat it and check its power cables, then have it "
        "replaced."
    ),
    severity="critical",
)

"""The PCIe link of an NVMe drive is degraded.

Why it matters: The link is slower or narrower than drive and slot support. A drive that trained with two lanes of
four, or one generation lower, reads at half its speed and reports no error. Every epoch then waits for this one drive.
Confirm manually: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: The drive is unavailable while it is reseated: stop what uses it.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci ; https://nvmexpress.org/specifications/
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, manual
from nodetune.checks.shared.pci_devices import FULL, NVME, ends_a_link, link


def observe(facts: FactsView) -> dict[str, str]:
    devices = facts["pci.devices"]
    links = {bdf: link(bdf, devices) for bdf, each in devices.items() if each["class"] == NVME and ends_a_link(each)}
    return {bdf: state for bdf, state in links.items() if state is not None}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=Equals(FULL),
    applies=(BARE_METAL,),
    remedy=manual(
        "Reseat the drive in its bay. Swap bays to find out whether the drive or the backplane is faulty, and replace "
        "that part."
    ),
    severity="medium",
    cost="bandwidth",
)

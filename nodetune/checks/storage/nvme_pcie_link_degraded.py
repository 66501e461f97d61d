"""An NVMe drive's PCIe link is slower or narrower than drive and slot can do.

Why it matters: A drive that came up with two lanes of four, or one generation lower, reads at half its speed and reports no
error. Every epoch then waits for this one drive.
Confirm by hand: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: The drive is away while it is reseated: stop what uses it.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci ; https://nvmexpress.org/specifications/
"""

from nodetune.checks.pcie._devices import FULL, NVME, ends_a_link, link
from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    devices = facts["pci.devices"]
    links = {bdf: link(bdf, devices) for bdf, each in devices.items() if each["class"] == NVME and ends_a_link(each)}
    return {bdf: seen for bdf, seen in links.items() if seen is not None}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=Equals(FULL),
    applies=(BARE_METAL,),
    remedy=manual(
        "Reseat the drive in its bay; swap bays to see whether drive or backplane is at fault; replace that part."
    ),
    severity="medium",
)

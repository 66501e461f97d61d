"""The link from a PCIe switch to the CPU is slower or narrower than both of its ends can do.

Why it matters: All GPUs, NICs and drives below the switch share this link for everything that goes to host memory. When it
trains down after a bad contact or a riser fault, every one of them is slow and none of them reports it.
Confirm by hand: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: Reseating needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.checks.pcie._devices import FULL, bridges, ends_a_link, link
from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    devices = facts["pci.devices"]
    uplinks = {bdf: link(bdf, devices) for bdf, each in bridges(devices).items() if ends_a_link(each)}
    return {bdf: seen for bdf, seen in uplinks.items() if seen is not None}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=Equals(FULL),
    applies=(BARE_METAL,),
    remedy=manual(
        "Compare with the same switch of a sibling node; look for AER messages in dmesg; reboot once, and if the link stays "
        "down reseat or replace the riser, cable or board at the address named."
    ),
    severity="medium",
)

"""The PCIe link between a switch and the CPU is degraded.

Why it matters: The link is slower or narrower than both ends support. All GPUs, NICs and drives below the switch share
it for traffic to host memory. After a bad contact or a riser fault, every one of them is slow, and none of them
reports it.
Confirm manually: lspci -vv -s BDF | grep -E 'LnkCap:|LnkSta:'
Side effects of the fix: Reseating needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, manual
from nodetune.checks.shared.pci_devices import FULL, bridges, ends_a_link, link


def observe(facts: FactsView) -> dict[str, str]:
    devices = facts["pci.devices"]
    uplinks = {bdf: link(bdf, devices) for bdf, each in bridges(devices).items() if ends_a_link(each)}
    return {bdf: state for bdf, state in uplinks.items() if state is not None}


CHECK = Check(
    needs=("pci.devices",),
    observe=observe,
    accept=Equals(FULL),
    applies=(BARE_METAL,),
    remedy=manual(
        "Compare with the same switch of an identical node. Look for AER messages in dmesg. Reboot once; if the link "
        "stays degraded, reseat or replace the riser, cable or board at the address named."
    ),
    severity="medium",
)

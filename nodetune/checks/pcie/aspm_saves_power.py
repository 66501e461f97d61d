"""PCIe links may go to sleep to save power (ASPM).

Why it matters: Waking a link takes microseconds, paid by the first transfer after each pause: small messages and NVMe reads
see it as jitter. "default" keeps what the firmware chose, which server boards set for performance. The kernel argument
pcie_aspm=off does not switch ASPM off: it only keeps Linux from touching it.
Confirm by hand: cat /sys/module/pcie_aspm/parameters/policy
Side effects of the fix: A little more power drawn at idle.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (pcie_aspm) ;
https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysfs

CHECK = Check(
    fact="pci.aspm_policy",
    accept=OneOf(["default", "performance"]),
    set="performance",
    applies=(BARE_METAL,),
    remedy=sysfs("/sys/module/pcie_aspm/parameters/policy"),
    severity="low",
)

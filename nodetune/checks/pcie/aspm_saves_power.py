"""The PCIe ASPM policy lets links sleep.

Why it matters: Waking a link takes microseconds. The first transfer after each pause waits for it: small messages and
NVMe reads show jitter. "default" keeps the choice of the firmware, which server boards set for performance. The kernel
argument pcie_aspm=off does not switch ASPM off: it only keeps Linux from changing it.
Confirm manually: cat /sys/module/pcie_aspm/parameters/policy
Side effects of the fix: A little more power drawn at idle.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (pcie_aspm) ;
https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
"""

from nodetune.api import BARE_METAL, Check, OneOf, sysfs

CHECK = Check(
    fact="pci.aspm_policy",
    accept=OneOf(["default", "performance"]),
    set="performance",
    applies=(BARE_METAL,),
    remedy=sysfs("/sys/module/pcie_aspm/parameters/policy"),
    severity="low",
    name="ASPM",
)

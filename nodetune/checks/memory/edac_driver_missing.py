"""No EDAC driver is loaded.

Why it matters: Without an EDAC driver, a module that needs constant correction remains unnoticed until it fails
completely. Some platforms keep the counts in the firmware on purpose. On those, monitor the BMC's event log.
Confirm manually: ls /sys/devices/system/edac/mc
Side effects of the fix: None. The driver only reads registers.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html
"""

from nodetune.api import BARE_METAL, Check, Empty, Equals, FactsView, When, manual


def observe(facts: FactsView) -> str:
    return "" if facts["memory.edac.controllers"] else "no EDAC driver"


CHECK = Check(
    observe=observe,
    needs=("memory.edac.controllers",),
    accept=Empty("an EDAC driver"),
    applies=(BARE_METAL, When("host.arch", Equals("x86_64"), "on this CPU the firmware counts memory errors")),
    remedy=manual(
        "Load the driver of the platform: modprobe amd64_edac, i10nm_edac, skx_edac or (firmware first) ghes_edac; "
        "some kernels keep them in linux-modules-extra."
    ),
    severity="info",
    name="EDAC",
)

"""Nothing counts the errors of the host's memory modules.

Why it matters: Without an EDAC driver a module that needs correction all the time shows nowhere until it fails for
good. Some platforms keep the counts in the firmware on purpose; then the BMC's event log is the place to watch.
Confirm by hand: ls /sys/devices/system/edac/mc
Side effects of the fix: None; the driver only reads registers.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    return "" if facts["memory.edac.controllers"] else "no EDAC driver"


CHECK = Check(
    observe=observe,
    needs=("memory.edac.controllers",),
    accept=Empty("an EDAC driver"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Load the driver of the platform: modprobe amd64_edac, i10nm_edac, skx_edac or (firmware first) ghes_edac; "
        "some kernels keep them in linux-modules-extra"
    ),
    severity="info",
)

"""A memory module of the host has delivered data that could not be corrected.

Why it matters: The data that was read is lost: the process that held it was killed, or the page was cached and nobody
noticed yet. A module that did this once does it again, and takes a job with it each time.
Confirm by hand: grep -H . /sys/devices/system/edac/mc/mc*/ue_count
Side effects of the fix: The node is out of service while the module is replaced.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html ; https://github.com/mchehab/rasdaemon
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="memory.edac.uncorrected",
    accept=Equals(0),
    remedy=manual(
        "Drain the node. ras-mc-ctl --errors and the BMC's event log name the slot; replace that module. "
        "The counters start again at a reboot"
    ),
    severity="high",
)

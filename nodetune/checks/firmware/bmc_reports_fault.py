"""The management controller reports a fault of power, cooling or drives.

Why it matters: A chassis that runs on one power supply or with a dead fan throttles its GPUs or stops without warning; the
operating system sees none of this by itself.
Confirm by hand: ipmitool chassis status; ipmitool sel elist | tail -20
Side effects of the fix: Depends on the part; most supplies and fans can be changed while the machine runs.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="bmc.faults",
    accept=Empty("no fault"),
    remedy=manual(
        "Read the event log (ipmitool sel elist), find the part in `ipmitool sdr elist`, and have it replaced."
    ),
    severity="high",
)

"""The management controller's event log is nearly full.

Why it matters: Most controllers then drop new events: the next power, memory or PCIe fault leaves no trace.
Confirm by hand: ipmitool sel info
Side effects of the fix: Clearing loses the old events: save them first.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.expect import AtMost
from nodetune.model import Absent, Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> int | Absent:
    log = facts["bmc.event_log"]
    used: int | None = 100 if log["overflow"] else log["used_percent"]
    return Absent("the controller does not say how full its log is") if used is None else used


CHECK = Check(
    needs=("bmc.event_log",),
    observe=observe,
    accept=AtMost(90),
    unit="% used",
    remedy=manual("Save and clear it: ipmitool sel save /var/tmp/sel.txt && ipmitool sel clear"),
    severity="low",
)

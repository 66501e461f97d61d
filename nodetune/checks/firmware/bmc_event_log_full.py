"""The BMC event log is nearly full.

Why it matters: Most BMCs drop new events when the log is full. The next power, memory or PCIe fault then leaves no
trace.
Confirm manually: ipmitool sel info
Side effects of the fix: Clearing the log deletes the old events: save them first.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from __future__ import annotations

from nodetune.api import Absent, AtMost, Check, FactsView, manual


def observe(facts: FactsView) -> int | Absent:
    log = facts["bmc.event_log"]
    used: int | None = 100 if log["overflow"] else log["used_percent"]
    return Absent("the BMC does not report how full its log is") if used is None else used


CHECK = Check(
    needs=("bmc.event_log",),
    observe=observe,
    accept=AtMost(90),
    unit="% used",
    remedy=manual("Save and clear the log: ipmitool sel save /var/tmp/sel.txt && ipmitool sel clear"),
    severity="low",
    name="BMC event log",
    cost="setting",
)

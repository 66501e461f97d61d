"""A memory module has uncorrectable errors.

Why it matters: The data that was read is lost. Either the process that used it was killed, or the page was cached and
nobody has noticed yet. A module that fails once fails again, and ends a job each time.
Healthy exception: No EDAC driver watches the memory of a virtual machine.
Confirm manually: grep -H . /sys/devices/system/edac/mc/mc*/ue_count
Side effects of the fix: The node is out of service while the module is replaced.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html ; https://github.com/mchehab/rasdaemon
"""

from nodetune.api import Check, Equals, repair

CHECK = Check(
    fact="memory.edac.uncorrected",
    accept=Equals(0),
    remedy=repair(
        "Drain the node. Find the slot with ras-mc-ctl --errors and the BMC's event log, and replace that module. "
        "A reboot resets the counters."
    ),
    severity="high",
    name="uncorrected errors",
)

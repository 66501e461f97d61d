"""The processor or the firmware reported a hardware error that nothing could correct.

Why it matters: Memory, a cache or the processor lost data. The kernel ended the process that used it, or took the page
out of use; a second error can stop the host.
Healthy exception: Errors that were corrected are normal, and those of the PCIe bus have a check of their own. In the first two minutes after boot, processors report what an
earlier boot left behind, and some firmware reports what never happened.
Confirm manually: journalctl -k -b | grep -E 'Hardware Error|Machine Check'; ras-mc-ctl --errors
Side effects of the fix: The node is out of service while the part is replaced.
Sources: https://docs.kernel.org/admin-guide/RAS/main.html ; https://docs.kernel.org/arch/x86/x86_64/machinecheck.html ;
https://www.kernel.org/doc/html/v6.12/arch/x86/x86_64/boot-options.html (mce=bootlog: "some BIOS leave bogus ones")
"""

from math import inf

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.kernel_events import UPTIME, ago

LEFT_OVER_S = 120
OF_THE_BUS = "PCIe"
"""Told by aer-uncorrectable-errors."""


def observe(facts: FactsView) -> str:
    """Count the whole boot: a part that failed stays in use."""
    events = facts["kernel_log.machine_checks"]
    found = [each for each in events if each["time"] > LEFT_OVER_S and not each["text"].startswith(OF_THE_BUS)]
    if not found:
        return ""
    more = f", {len(found)} in this boot" if len(found) > 1 else ""
    uptime = facts.readable(UPTIME)
    age = None if uptime is None else max(0, uptime - found[-1]["time"])
    return f"{found[-1]['text']}, {ago(age)}{more}"


CHECK = Check(
    needs=("kernel_log.machine_checks", UPTIME),
    observe=observe,
    log=inf,
    accept=Empty("no uncorrected hardware error"),
    remedy=repair(
        "Drain the node. Find the part: ras-mc-ctl --errors (rasdaemon), ipmitool sel elist. Have the named module or "
        "processor replaced; if none is named, run the vendor's diagnostic."
    ),
    severity="high",
    name="hardware error",
    part_of="edac-uncorrected-errors",
)

"""The BMC reports a power, cooling or drive fault.

Why it matters: A chassis that runs on one power supply or with a failed fan throttles its GPUs or shuts down without
warning. The operating system does not detect this by itself.
Healthy exception: A host without a BMC, such as a virtual machine, cannot be asked.
Confirm manually: ipmitool chassis status; ipmitool sel elist | tail -20
Side effects of the fix: Depends on the part. Most power supplies and fans can be replaced while the machine runs.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.api import Check, Empty, manual

CHECK = Check(
    fact="bmc.faults",
    accept=Empty("no fault"),
    remedy=manual("Read the event log (ipmitool sel elist), find the part in `ipmitool sdr elist`, and replace it."),
    severity="high",
    name="BMC",
)

"""Kernel same-page merging (KSM) is on.

Why it matters: The ksmd thread scans memory and compares pages continuously. A merged page must be copied when a
process writes to it. Training and serving processes have almost nothing to merge. KSM pays off on hosts with many
similar virtual machines.
Confirm manually: cat /sys/kernel/mm/ksm/run
Side effects of the fix: Merged pages stay merged until they are written. Writing 2 to the file separates them
immediately and needs the memory for it. The services ksm and ksmtuned, if installed, turn KSM on again.
Sources: https://docs.kernel.org/admin-guide/mm/ksm.html
"""

from nodetune.api import Check, OneOf, sysfs

CHECK = Check(
    fact="memory.ksm.run",
    accept=OneOf([0, 2]),
    set=0,
    remedy=sysfs("/sys/kernel/mm/ksm/run", boot_default=0),
    severity="low",
    name="ksm",
)

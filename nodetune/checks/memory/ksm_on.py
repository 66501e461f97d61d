"""The kernel looks for equal pages to merge (KSM is on).

Why it matters: The ksmd thread scans memory and compares pages all the time, and a merged page must be copied when
somebody writes to it. Training and serving processes have next to nothing to merge. It pays on hosts packed with
similar virtual machines.
Confirm by hand: cat /sys/kernel/mm/ksm/run
Side effects of the fix: Pages that are merged stay so until they are written; writing 2 to the file takes them apart
at once and needs the memory for it. The services ksm and ksmtuned, where they are installed, turn it on again.
Sources: https://docs.kernel.org/admin-guide/mm/ksm.html
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysfs

CHECK = Check(
    fact="memory.ksm.run",
    accept=OneOf([0, 2]),
    set=0,
    remedy=sysfs("/sys/kernel/mm/ksm/run", boot_default=0),
    severity="low",
)

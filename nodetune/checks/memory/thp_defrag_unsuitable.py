"""Transparent huge pages are made in a way that does not suit GPU work.

Why it matters: With "always" any program that touches fresh memory may stop until the kernel has moved other pages out
of the way, which shows as stalls in data loaders and proxy threads. With "never" even programs that ask for huge pages
(NumPy, for one) get one only when a free one lies about.
Confirm by hand: cat /sys/kernel/mm/transparent_hugepage/defrag
Side effects of the fix: Programs that do not ask for huge pages get fewer of them right away.
Sources: https://docs.kernel.org/admin-guide/mm/transhuge.html
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysfs

CHECK = Check(
    fact="memory.thp.defrag",
    accept=OneOf(["madvise", "defer+madvise", "defer"]),
    set="madvise",
    remedy=sysfs("/sys/kernel/mm/transparent_hugepage/defrag", boot_default="madvise"),
    severity="low",
)

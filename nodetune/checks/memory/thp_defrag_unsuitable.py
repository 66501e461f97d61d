"""transparent_hugepage/defrag is unsuitable for GPU work.

Why it matters: With "always", any program that touches new memory may stop until the kernel has moved other pages away.
Data loaders and proxy threads stall. With "never", even programs that request huge pages (such as NumPy) get one only
if one is free.
Confirm manually: cat /sys/kernel/mm/transparent_hugepage/defrag
Side effects of the fix: Programs that do not request huge pages get fewer of them immediately.
Sources: https://docs.kernel.org/admin-guide/mm/transhuge.html
"""

from nodetune.api import Check, OneOf, sysfs

CHECK = Check(
    fact="memory.thp.defrag",
    accept=OneOf(["madvise", "defer+madvise", "defer"]),
    set="madvise",
    remedy=sysfs("/sys/kernel/mm/transparent_hugepage/defrag", boot_default="madvise"),
    severity="low",
    name="transparent_hugepage",
)

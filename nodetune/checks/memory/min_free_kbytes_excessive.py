"""The kernel keeps so much memory free that programs run short.

Why it matters: Nobody but the kernel's own emergencies gets at this reserve. A value copied from a machine with
terabytes takes a large part of a small one and makes the kernel kill processes while memory is still free.
Confirm by hand: sysctl vm.min_free_kbytes
Side effects of the fix: None known.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#min-free-kbytes
"""

from nodetune.expect import AtMost
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.min_free_kbytes",
    accept=AtMost(Ref("derived.min_free_kbytes_ceiling")),
    set=Ref("derived.min_free_kbytes"),
    unit="KiB",
    remedy=sysctl("vm.min_free_kbytes"),
    severity="medium",
)

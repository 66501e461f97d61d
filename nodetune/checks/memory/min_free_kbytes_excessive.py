"""vm.min_free_kbytes is too high.

Why it matters: Only the kernel's emergency allocations can use this reserve. A value copied from a machine with
terabytes takes a large part of a small machine's memory. The kernel then kills processes while memory is still free.
Confirm manually: sysctl vm.min_free_kbytes
Side effects of the fix: None known.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#min-free-kbytes
"""

from nodetune.api import AtMost, Check, Ref, sysctl

CHECK = Check(
    fact="sysctl.vm.min_free_kbytes",
    accept=AtMost(Ref("derived.min_free_kbytes_ceiling")),
    set=Ref("derived.min_free_kbytes"),
    unit="KiB",
    remedy=sysctl("vm.min_free_kbytes"),
    severity="medium",
)

"""The kernel keeps too little memory free for bursts.

Why it matters: Network and storage drivers take memory in interrupts, where nothing can be waited for. On a machine
with terabytes a reserve of tens of MiB is gone in milliseconds of traffic at 400 Gb/s; then packets are dropped and
allocations stall in direct reclaim. The hpc-compute profile of tuned sets 132 MiB everywhere; more on very large
machines is a judgement.
Confirm by hand: sysctl vm.min_free_kbytes
Side effects of the fix: That much less memory for programs; too high a value on a small machine makes the kernel kill
processes early.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#min-free-kbytes ;
https://github.com/redhat-performance/tuned (profile hpc-compute)
"""

from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.min_free_kbytes",
    accept=AtLeast(Ref("derived.min_free_kbytes")),
    set=Ref("derived.min_free_kbytes"),
    unit="KiB",
    remedy=sysctl("vm.min_free_kbytes"),
    severity="low",
)

"""vm.min_free_kbytes is too low.

Why it matters: Network and storage drivers allocate memory in interrupts, where they cannot wait. On a machine with
terabytes, traffic at 400 Gb/s uses up a reserve of tens of MiB in milliseconds. Packets are then dropped and
allocations stall in direct reclaim. The hpc-compute profile of tuned sets 132 MiB on every machine; a higher value on
very large machines is a judgement call. The kernel's own reserve suffices for links below 100 Gb/s, and for InfiniBand.
Confirm manually: sysctl vm.min_free_kbytes
Side effects of the fix: Programs have that much less memory. Too high a value on a small machine makes the kernel kill
processes early.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#min-free-kbytes ;
https://github.com/redhat-performance/tuned (profile hpc-compute)
"""

from __future__ import annotations

from nodetune.api import Absent, AtLeast, Check, FactsView, Ref, Value, sysctl
from nodetune.checks.shared.network_links import fast

FAST_MBPS = 100_000
SETTING = "sysctl.vm.min_free_kbytes"


def observe(facts: FactsView) -> Value | Absent:
    reserve = Value(facts[SETTING])
    return reserve if fast(facts["net.links"], FAST_MBPS) else Absent("no Ethernet link of 100 Gb/s or more")


CHECK = Check(
    needs=(SETTING, "net.links"),
    observe=observe,
    accept=AtLeast(Ref("derived.min_free_kbytes")),
    set=Ref("derived.min_free_kbytes"),
    unit="KiB",
    remedy=sysctl("vm.min_free_kbytes"),
    severity="info",
)

"""vm.swappiness is too high.

Why it matters: Data loaders fill the page cache with files that are read once. At the default of 60, the kernel makes
room for them by swapping out memory of the processes that read them. The tuned profiles for throughput use 10.
Swap in compressed memory alone (zram) is left out: there, the kernel's guide names values beyond 100.
Confirm manually: sysctl vm.swappiness
Side effects of the fix: Cold memory of idle daemons stays in RAM. 0 does not mean "never": it defers swapping until the
kernel is close to killing processes.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#swappiness ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.api import AtMost, Check, Empty, FactAbsentError, FactsView, Not, When, sysctl
from nodetune.checks.memory._swap import on_disk


def observe(facts: FactsView) -> int:
    if not on_disk(facts):
        raise FactAbsentError("all swap is compressed memory")
    return int(facts["sysctl.vm.swappiness"])


CHECK = Check(
    needs=("sysctl.vm.swappiness", "memory.swaps"),
    observe=observe,
    accept=AtMost(10),
    set=10,
    applies=(When("memory.swaps", Not(Empty()), "no swap space is configured"),),
    remedy=sysctl("vm.swappiness", boot_default=60),
    part_of="swap-large",
    severity="low",
)

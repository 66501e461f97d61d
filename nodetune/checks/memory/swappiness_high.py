"""The kernel swaps programs out readily to keep files cached.

Why it matters: Data loaders fill the page cache with files that are read once. At the default of 60 the kernel makes
room for them by swapping out memory of the very processes that read them. The tuned profiles for throughput use 10.
Confirm by hand: sysctl vm.swappiness
Side effects of the fix: Cold memory of idle daemons stays in RAM. 0 is not "never": it defers swapping until the
kernel is close to killing processes.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#swappiness ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import AtMost, Empty, Not
from nodetune.model import Check, When
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.swappiness",
    accept=AtMost(10),
    set=10,
    applies=(When("memory.swaps", Not(Empty()), "no swap: nothing can be swapped out"),),
    remedy=sysctl("vm.swappiness", boot_default=60),
    severity="low",
)

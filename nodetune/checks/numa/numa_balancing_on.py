"""Automatic NUMA balancing is on.

Why it matters: The kernel unmaps pages of running processes on purpose, to see from which node they are touched, and
moves them. Pinned buffers and GPU work gain nothing from it; data loaders and NCCL proxy threads take the page
faults as jitter. On Grace the GPU's memory is a NUMA node too, and pages can move across the link.
Confirm by hand: cat /proc/sys/kernel/numa_balancing
Side effects of the fix: A CPU program with poor locality may run slower; measure it if the node also runs such jobs.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.kernel.numa_balancing",
    accept=Equals(0),
    set=0,
    absent="pass",
    remedy=sysctl("kernel.numa_balancing"),
    severity="high",
)

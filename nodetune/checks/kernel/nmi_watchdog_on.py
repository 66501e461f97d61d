"""A watchdog interrupts every CPU to see whether the kernel hangs.

Why it matters: The hard-lockup detector takes one performance counter of every CPU and interrupts it now and then; a
serving node feels that in its tail latency. Training nodes lose nothing that can be measured, and keep the dumps.
Confirm by hand: sysctl kernel.nmi_watchdog
Side effects of the fix: A CPU that hangs with interrupts off leaves no trace in the kernel log.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#nmi-watchdog ;
https://github.com/redhat-performance/tuned (profile network-latency)
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.kernel.nmi_watchdog",
    accept=Equals(0),
    set=0,
    remedy=sysctl("kernel.nmi_watchdog"),
    severity="low",
)

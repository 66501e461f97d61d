"""kernel.nmi_watchdog is on.

Why it matters: The hard-lockup detector uses one performance counter of every CPU and interrupts the CPU now and then
to check that the kernel has not hung. On a serving node this adds to tail latency. Training nodes lose nothing
measurable and keep the dumps.
Confirm manually: sysctl kernel.nmi_watchdog
Side effects of the fix: A CPU that hangs with interrupts off leaves no trace in the kernel log.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#nmi-watchdog ;
https://github.com/redhat-performance/tuned (profile network-latency)
"""

from dataclasses import replace

from nodetune.api import Check, Equals, sysctl

CHECK = Check(
    fact="sysctl.kernel.nmi_watchdog",
    accept=Equals(0),
    set=0,
    remedy=replace(sysctl("kernel.nmi_watchdog"), alike=("nmi_watchdog=0", "nowatchdog=")),
    severity="low",
)

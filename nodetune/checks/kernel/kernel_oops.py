"""The kernel had a fault of its own (oops) and went on.

Why it matters: A driver or the kernel itself used wrong memory. The kernel ended the program that ran, but not what it
held: locks stay taken, so that later programs hang, and data of the kernel may be damaged. Until the next boot such a
host may fail in any way. The check counts the whole boot.
Confirm manually: journalctl -k -b | grep -A30 -E 'BUG: (kernel|unable)|kernel BUG at|Unable to handle kernel|\\[#[0-9]+\\]'
Side effects of the fix: A reboot ends everything that runs on the node.
Sources: https://github.com/kubernetes/node-problem-detector (kernel-monitor.json, KernelOops) ;
https://docs.kernel.org/admin-guide/bug-hunting.html ; https://github.com/NVIDIA/open-gpu-kernel-modules/pull/647
"""

from math import inf

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import UPTIME, of_boot, require_read


def observe(facts: FactsView) -> str:
    require_read(facts, "kernel_log.oopses")
    return of_boot(facts, "kernel_log.oopses")


CHECK = Check(
    needs=("kernel_log.oopses", "kernel_log.lockups", UPTIME),
    observe=observe,
    log=inf,
    accept=Empty("no oops"),
    remedy=manual(
        "Read the call trace in the log: it names the driver, if one is to blame. Reboot the node when its jobs have ended. If "
        "it happens again, update that driver or the kernel; oopses at changing places suggest bad memory."
    ),
    severity="medium",
)

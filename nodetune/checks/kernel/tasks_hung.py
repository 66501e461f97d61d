"""Processes hung in the kernel.

Why it matters: They waited for two minutes or more without being able to end: for a disk, a file server or a driver that
did not answer. Jobs stall, and cannot be cancelled in that time. The kernel warns ten times for each boot by default, so
there may have been more. The check counts the last week of this boot.
Confirm manually: journalctl -k -b | grep -A20 'blocked for more than'
Side effects of the fix: None: it only reports.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#hung-task-timeout-secs ;
https://github.com/kubernetes/node-problem-detector (kernel-monitor.json, TaskHung)
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, recent, times


def observe(facts: FactsView) -> str:
    hung = recent(facts, "kernel_log.hung_tasks")
    return times(hung, f"{hung[-1]['task']} hung for {hung[-1]['seconds']} s or more") if hung else ""


CHECK = Check(
    needs=("kernel_log.hung_tasks", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no hung process"),
    remedy=manual(
        "Read the call trace in the log: nfs_ or rpc_ names a file server, nvme_ or blk_ a disk, nv or uvm the NVIDIA "
        "driver. Processes that still hang: ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'. Only a reboot ends "
        "those that never return."
    ),
    severity="low",
    name="hung processes",
)

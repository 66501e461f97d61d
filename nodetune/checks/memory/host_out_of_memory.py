"""The host ran out of memory, and the kernel ended processes.

Why it matters: The kernel chose which process to end. It may belong to another user's job, or be a daemon that the node
needs (slurmd, kubelet, nvidia-persistenced). The check counts the last week of this boot. It leaves out a job that
reached the limit of its own cgroup, and one that may use some NUMA nodes only: those ended nobody else's work.
Confirm manually: journalctl -k -b | grep -E 'Out of memory|oom-kill:constraint=CONSTRAINT_NONE'
Side effects of the fix: Jobs that take more memory than they asked for are ended.
Sources: https://docs.kernel.org/admin-guide/mm/concepts.html#oom-killer ;
https://github.com/kubernetes/node-problem-detector (kernel-monitor.json, OOMKilling)
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, recent, times

OF_THE_HOST = (None, "NONE")
"""Older kernels do not report why memory ran out."""


def observe(facts: FactsView) -> str:
    ended = [each for each in recent(facts, "kernel_log.oom_kills") if each["scope"] in OF_THE_HOST]
    return times(ended, f"{ended[-1]['process']} was ended") if ended else ""


CHECK = Check(
    needs=("kernel_log.oom_kills", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no process ended for lack of memory"),
    remedy=manual(
        "Check that the services of the node still run (systemctl --failed). Limit what jobs may take (Slurm: "
        "ConstrainRAMSpace=yes and MemSpecLimit; Kubernetes: memory limits and system-reserved)."
    ),
    severity="medium",
    name="host memory",
)

"""A CPU was stuck in the kernel.

Why it matters: For 20 seconds or more, the CPU ran nothing but one piece of the kernel (soft lockup), or did not even take
interrupts (hard lockup), or it held up the whole kernel's housekeeping (RCU stall). Every rank of a job waits for the process on that CPU. Usual causes are a driver that waits for a
device that does not answer, a bug, or a hypervisor that gave the CPU to others. The check counts the last week of this
boot.
Confirm manually: journalctl -k -b | grep -A30 -E 'soft lockup|hard LOCKUP|detected stall'
Side effects of the fix: None: it only reports.
Sources: https://docs.kernel.org/admin-guide/lockup-watchdogs.html ; https://docs.kernel.org/RCU/stallwarn.html ;
https://github.com/torvalds/linux (kernel/watchdog.c) ; https://github.com/NVIDIA/NVSentinel/issues/1334
"""

from __future__ import annotations

from collections import defaultdict

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, recent, times

UNNAMED = "CPU not named"


def observe(facts: FactsView) -> dict[str, str] | str:
    of = defaultdict(list)
    for each in recent(facts, "kernel_log.lockups"):
        of[each["cpu"]].append(each)
    locked = {f"CPU{number}": times(mine, _text(mine[-1]["seconds"])) for number, mine in sorted(of.items())}
    if facts.readable("kernel_log.rcu_stalls") is None:  # facts of an earlier version
        return locked or ""
    stalled = defaultdict(list)
    for each in recent(facts, "kernel_log.rcu_stalls"):
        stalled[UNNAMED if each["cpu"] is None else f"CPU{each['cpu']}"].append(each)
    return {**{cpu: times(mine, "held up RCU") for cpu, mine in stalled.items()}, **locked} or ""


def _text(seconds: int | None) -> str:
    return "took no interrupts" if seconds is None else f"stuck for {seconds} s"


CHECK = Check(
    needs=("kernel_log.lockups", "kernel_log.rcu_stalls", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no lockup"),
    remedy=manual(
        "Read the call trace in the log: mlx5 names a network card, nv or uvm the NVIDIA driver. If no driver is in it, read "
        "the BMC's event log for machine checks, and update kernel and firmware. In a virtual machine, ask its host about "
        "overcommitted CPUs and pauses."
    ),
    severity="medium",
)

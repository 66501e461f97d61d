"""Automatic NUMA balancing is on.

Why it matters: The kernel unmaps pages of running processes on purpose, to see from which node they are touched, and
moves them. Pinned buffers and GPU work gain nothing from it; data loaders and NCCL proxy threads take the page
faults as jitter. On Grace the GPU's memory is a NUMA node too, and pages can move across the link.
Confirm by hand: cat /proc/sys/kernel/numa_balancing
Side effects of the fix: A CPU program with poor locality may run slower; measure it if the node also runs such jobs.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from __future__ import annotations

from typing import Any

from nodetune.expect import Equals
from nodetune.model import Absent, Check
from nodetune.remedies import sysctl
from nodetune.view import View

SETTING = "sysctl.kernel.numa_balancing"
PERSISTED = f"persisted.{SETTING}"
ARGUMENT = "cmdline.running.numa_balancing"


def now_or_lost(facts: View) -> Any:
    """The value now; or 1 at the next boot, when only a hand keeps it off on a host where the kernel turns it on."""
    now = facts[SETTING]
    if now != 0 or not isinstance(facts.fact(PERSISTED), Absent):
        return now
    if facts.get(ARGUMENT) == "disable" or facts.get("numa.node_count", 1) < 2:
        return now
    return {"the next boot": 1}


CHECK = Check(
    observe=now_or_lost,
    needs=(SETTING, PERSISTED, ARGUMENT, "numa.node_count"),
    accept=Equals(0),
    set=0,
    absent="pass",
    remedy=sysctl("kernel.numa_balancing"),
    severity="high",
)

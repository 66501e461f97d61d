"""kernel.numa_balancing is on.

Why it matters: The kernel unmaps pages of running processes to find out which node uses them, and moves them. Pinned
buffers and GPU work gain nothing from it. The page faults add jitter to data loaders and NCCL proxy threads. On Grace
the GPU's memory is a NUMA node too, and pages can move across the link.
Confirm manually: cat /proc/sys/kernel/numa_balancing
Side effects of the fix: A CPU program with poor locality may run slower. Measure it if the node also runs such jobs.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from __future__ import annotations

from typing import Any

from nodetune.api import Absent, Check, Equals, FactsView, sysctl

SETTING = "sysctl.kernel.numa_balancing"
PERSISTED = f"persisted.{SETTING}"
ARGUMENTS = "derived.next_arguments"
TUNED = "derived.tuned_settings"


def now_or_next_boot(facts: FactsView) -> Any:
    """Return the value, or 1 at the next boot if it is off only until the kernel turns it on again."""
    now = facts[SETTING]
    if now != 0 or not isinstance(facts.fact(PERSISTED), Absent):
        return now
    if facts.readable(ARGUMENTS, {}).get("numa_balancing") == "disable" or facts.get("numa.node_count", 1) < 2:
        return now
    if "kernel.numa_balancing" in facts.readable(TUNED, {}).get("sysctl", {}):
        return now
    return {"the next boot": 1}


CHECK = Check(
    observe=now_or_next_boot,
    needs=(SETTING, PERSISTED, ARGUMENTS, "numa.node_count", TUNED),
    accept=Equals(0),
    set=0,
    absent="pass",
    remedy=sysctl("kernel.numa_balancing"),
    severity="medium",
)

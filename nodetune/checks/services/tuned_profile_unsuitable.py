"""The active tuned profile trades speed for power or desktop comfort.

Why it matters: Profiles such as balanced or powersave let clocks fall and disks sleep between bursts of work; data
loading and kernel launches on the host pay for it. A profile of your own is judged by those that it includes; virtual-guest
and those of cloud providers (aws) rest on throughput-performance.
Confirm by hand: tuned-adm active
Side effects of the fix: hpc-compute and latency-performance keep cores out of deep sleep: more power when idle.
Sources: https://github.com/redhat-performance/tuned (profiles) ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/monitoring_and_managing_system_status_and_performance/
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View

BASES = ("throughput-performance", "latency-performance", "accelerator-performance")
PLAIN = (
    "balanced",
    "balanced-battery",
    "powersave",
    "desktop",
    "laptop-ac-powersave",
    "laptop-battery-powersave",
    "spindown-disk",
    "server-powersave",
    "enterprise-storage",
    "default",
)
STOCK = (*BASES, *PLAIN)


def observe(facts: View) -> str:
    """The stock profile that all rests on: hpc-compute rests on latency-performance."""
    unit = facts.get("services.tuned")
    if not unit or unit["active"] != "active":
        raise Missing("tuned does not run")
    chain = facts["services.tuned_profile"]["chain"]
    found = [name for name in chain if name in STOCK]
    if not found:
        raise Missing(f"{' '.join(chain)} rests on no stock profile")
    return str(next((name for name in found if name in BASES), found[0]))


CHECK = Check(
    needs=("services.tuned", "services.tuned_profile"),
    observe=observe,
    accept=OneOf(list(BASES)),
    remedy=manual(
        "tuned-adm profile hpc-compute (or accelerator-performance, throughput-performance; in a guest virtual-guest)"
    ),
    severity="low",
)

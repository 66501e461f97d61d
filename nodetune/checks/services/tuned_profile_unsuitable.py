"""The active tuned profile trades speed for power savings.

Why it matters: Profiles such as balanced or powersave let clocks fall and disks sleep between bursts of work. Data
loading and kernel launches on the host become slower. The check judges a custom profile by the profiles that it
includes; virtual-guest and those of cloud providers (aws) include throughput-performance.
Confirm manually: tuned-adm active
Side effects of the fix: hpc-compute and latency-performance keep cores out of deep sleep: more power when idle.
Sources: https://github.com/redhat-performance/tuned (profiles) ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/monitoring_and_managing_system_status_and_performance/
"""

from nodetune.api import Check, FactAbsentError, FactsView, OneOf, manual

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


def observe(facts: FactsView) -> str:
    """Return the stock profile that the active one includes: hpc-compute includes latency-performance."""
    unit = facts.get("services.tuned")
    if not unit or unit["active"] != "active":
        raise FactAbsentError("tuned is not running")
    chain = facts["services.tuned_profile"]["chain"]
    found = [name for name in chain if name in STOCK]
    if not found:
        raise FactAbsentError(f"{' '.join(chain)} includes no stock profile")
    return str(next((name for name in found if name in BASES), found[0]))


CHECK = Check(
    needs=("services.tuned", "services.tuned_profile"),
    observe=observe,
    accept=OneOf(list(BASES)),
    remedy=manual(
        "tuned-adm profile hpc-compute (or accelerator-performance, throughput-performance; in a guest virtual-guest)."
    ),
    severity="low",
    name="tuned profile",
)

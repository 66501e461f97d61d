"""Several tools set the CPU frequency policy.

Why it matters: Each tool writes the governor, the energy preference or the boost state at boot, on a profile change or
on a power event, and the last one wins. Values set by the others are lost without a message.
Confirm manually: systemctl is-active tuned power-profiles-daemon cpupower cpufrequtils ondemand tlp
Side effects of the fix: The remaining tool alone decides. Check its settings before you disable the others.
Sources: https://github.com/redhat-performance/tuned (plugin cpu) ;
https://gitlab.freedesktop.org/upower/power-profiles-daemon
"""

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual
from nodetune.checks.services._units import running

RESIDENT = ("tuned", "power-profiles-daemon", "tlp", "auto-cpufreq")
AT_BOOT = ("cpupower", "cpufrequtils", "ondemand", "nodetune-cpu")
"""Tools that write once at boot and may have exited."""


def observe(facts: FactsView) -> list[str]:
    boot = [
        name for name in AT_BOOT if (facts.get(f"services.{name}") or {}).get("enabled") in ("enabled", "generated")
    ]
    owners = running(facts, RESIDENT) + boot
    return owners if len(owners) > 1 else []


CHECK = Check(
    needs=tuple(f"services.{name}" for name in (*RESIDENT, *AT_BOOT)),
    observe=observe,
    accept=Empty("at most one"),
    applies=(BARE_METAL,),
    remedy=manual("Keep one of them. For each of the others: systemctl disable --now NAME"),
    severity="medium",
    name="tuning tools",
)

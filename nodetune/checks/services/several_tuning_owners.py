"""Several tools set the CPU's clock policy at once.

Why it matters: Each writes the governor, the energy preference or the boost state at boot, on a profile change or on a
power event, and the last one wins. A value set by the others does not stay, without a message anywhere.
Confirm by hand: systemctl is-active tuned power-profiles-daemon cpupower cpufrequtils ondemand tlp
Side effects of the fix: The remaining tool alone decides; look at its settings before the others are switched off.
Sources: https://github.com/redhat-performance/tuned (plugin cpu) ;
https://gitlab.freedesktop.org/upower/power-profiles-daemon
"""

from nodetune.checks.services._units import running
from nodetune.conditions import BARE_METAL
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

RESIDENT = ("tuned", "power-profiles-daemon", "tlp", "auto-cpufreq")
AT_BOOT = ("cpupower", "cpufrequtils", "ondemand", "nodetune-cpu")
"""These write once at boot and may have ended."""


def observe(facts: View) -> list[str]:
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
    remedy=manual("Keep one of them; for each of the others: systemctl disable --now NAME"),
    severity="medium",
)

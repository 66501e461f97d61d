"""The power limit of a processor is below what it is made for.

Why it matters: Under load, the cores lower their clocks to stay below the limit, and so does all that feeds the GPUs.
Sites do this on purpose, for cooling or energy. The check reports it to explain slower results and changes nothing.
Confirm manually: grep . /sys/class/powercap/*/constraint_0_*power*_uw /sys/class/hwmon/hwmon*/{,device/}power1_cap*
Side effects of the fix: Power draw and heat rise.
Sources: https://docs.kernel.org/power/powercap/powercap.html ; https://docs.kernel.org/arch/x86/amd_hsmp.html ;
https://docs.kernel.org/hwmon/acpi_power_meter.html ; https://docs.nvidia.com/grace-perf-tuning-guide/power-thermals.html
"""

from nodetune.api import BARE_METAL, Check, Empty, FactsView, manual

ROUNDED = 99
"""Percent from which on a limit counts as the highest: registers hold eighths of a watt."""


def observe(facts: FactsView) -> dict[str, str]:
    return {
        package: f"{each['limit_uw'] / 1e6:g} of {each['max_uw'] / 1e6:g} W"
        if each["limit_uw"] * 100 < each["max_uw"] * ROUNDED
        else ""
        for package, each in facts["cpu.power_limits"].items()
    }


CHECK = Check(
    needs=("cpu.power_limits",),
    observe=observe,
    accept=Empty("the power that the processor is made for"),
    applies=(BARE_METAL,),
    remedy=manual(
        "If this is not intended, look for what sets it: the power profile in the firmware (cTDP, package power limit), the "
        "BMC's power cap, or a daemon such as thermald."
    ),
    severity="info",
)

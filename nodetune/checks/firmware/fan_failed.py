"""A fan has failed or runs too slowly.

Why it matters: GPUs behind the fan reach their thermal limit and slow down. Every synchronous job runs at the speed of
its slowest GPU.
Healthy exception: A place without a fan has no reading.
Confirm manually: ipmitool sdr type Fan
Side effects of the fix: Most fans can be replaced while the machine runs. Do it quickly: the other fans cannot
compensate for long.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.api import Check, Equals, FactsView, manual

FINE = ("ok", "ns")
"""ipmitool's codes for a good reading and for a sensor without a reading (an empty slot)."""


def observe(facts: FactsView) -> dict[str, str]:
    return {name: _state(sensor) for name, sensor in facts["bmc.fans"].items()}


def _state(sensor: dict[str, str]) -> str:
    return "ok" if sensor["status"] in FINE else f"{sensor['reading']} ({sensor['status']})"


CHECK = Check(
    needs=("bmc.fans",),
    observe=observe,
    accept=Equals("ok"),
    remedy=manual("Replace the named fan. Check whether other fans have sped up to compensate."),
    severity="high",
)

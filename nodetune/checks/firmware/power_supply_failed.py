"""A power supply has failed or has no input.

Why it matters: Eight-GPU machines need several power supplies at full load. With one missing, the machine at best loses
redundancy. At worst the board slows the GPUs (power brake), or the machine stops under the next full-load job.
Healthy exception: A place without a power supply has no reading.
Confirm manually: ipmitool sdr type "Power Supply"
Side effects of the fix: None. Power supplies can be replaced while the machine runs.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

import re

from nodetune.api import Check, Equals, FactsView, manual

FAULT = re.compile(
    "failure|AC lost|out-of-range|config error|redundancy lost|non-redundant: insufficient", re.IGNORECASE
)
CRITICAL = ("cr", "nr")
"""ipmitool's codes for critical and non-recoverable."""


def observe(facts: FactsView) -> dict[str, str]:
    return {name: _state(sensor) for name, sensor in facts["bmc.power_supplies"].items()}


def _state(sensor: dict[str, str]) -> str:
    faulty = sensor["status"] in CRITICAL or FAULT.search(sensor["reading"])
    return sensor["reading"] or sensor["status"] if faulty else "ok"


CHECK = Check(
    needs=("bmc.power_supplies",),
    observe=observe,
    accept=Equals("ok"),
    remedy=manual("Check the cord and the power distribution unit first. Then replace the named power supply."),
    severity="high",
)

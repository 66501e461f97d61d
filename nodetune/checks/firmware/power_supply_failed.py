"""A power supply has failed or has no input.

Why it matters: Eight-GPU machines need several supplies at full load. With one gone, redundancy is lost at best; at worst
the board slows the GPUs (power brake) or the machine stops under the next full-load job.
Confirm by hand: ipmitool sdr type "Power Supply"
Side effects of the fix: None: supplies are changed while the machine runs.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

import re

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

FAULT = re.compile(
    "failure|AC lost|out-of-range|config error|redundancy lost|non-redundant: insufficient", re.IGNORECASE
)
CRITICAL = ("cr", "nr")
"""How ipmitool shortens critical and non-recoverable."""


def observe(facts: View) -> dict[str, str]:
    return {name: _state(seen) for name, seen in facts["bmc.power_supplies"].items()}


def _state(seen: dict[str, str]) -> str:
    faulty = seen["status"] in CRITICAL or FAULT.search(seen["reading"])
    return seen["reading"] or seen["status"] if faulty else "ok"


CHECK = Check(
    needs=("bmc.power_supplies",),
    observe=observe,
    accept=Equals("ok"),
    remedy=manual("Check the cord and the power distribution unit first; then replace the supply that is named."),
    severity="high",
)

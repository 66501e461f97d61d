"""A fan has failed or turns too slowly.

Why it matters: GPUs behind it reach their thermal limit and slow down, and every synchronous job runs at the speed of its
slowest GPU.
Confirm by hand: ipmitool sdr type Fan
Side effects of the fix: Most fans are changed while the machine runs; do it quickly, the others cannot replace it for long.
Sources: https://github.com/ipmitool/ipmitool ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

FINE = ("ok", "ns")
"""How ipmitool shortens a good reading and a sensor without one (an empty slot)."""


def observe(facts: View) -> dict[str, str]:
    return {name: _state(seen) for name, seen in facts["bmc.fans"].items()}


def _state(seen: dict[str, str]) -> str:
    return "ok" if seen["status"] in FINE else f"{seen['reading']} ({seen['status']})"


CHECK = Check(
    needs=("bmc.fans",),
    observe=observe,
    accept=Equals("ok"),
    remedy=manual("Replace the fan that is named; look for others that have sped up to make good for it."),
    severity="high",
)

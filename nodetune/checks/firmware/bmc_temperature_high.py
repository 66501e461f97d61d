"""A temperature that the BMC measures is above its critical limit.

Why it matters: The maker of the board set the limit. Air that is too warm at the inlet (a failed cooler of the room, an open
front, hot air that flows back) runs the fans at full speed and slows all GPUs; above the next limit the board switches off.
GPUs report their own temperature, but not why it rises.
Healthy exception: A sensor of a part that is missing has no reading. Lower limits and warnings are not judged.
Confirm manually: ipmitool sdr type Temperature
Side effects of the fix: None: it only reports.
Sources: https://github.com/ipmitool/ipmitool (lib/ipmi_sdr.c) ;
https://www.intel.com/content/www/us/en/products/docs/servers/ipmi/ipmi-second-gen-interface-spec-v2-rev1-1.html
"""

from nodetune.api import Check, Empty, FactsView, manual

ABOVE = ("ucr", "unr")
"""ipmitool's codes: above the upper limit critical, or non-recoverable."""


def observe(facts: FactsView) -> dict[str, str]:
    return {
        name: each["reading"] if each["status"] in ABOVE else "" for name, each in facts["bmc.temperatures"].items()
    }


CHECK = Check(
    needs=("bmc.temperatures",),
    observe=observe,
    accept=Empty("below the limits of the board"),
    remedy=manual(
        "Compare the inlet with that of other hosts of the rack. One host: fans, filters, blanking panels, cables in the air "
        "stream. All of them: the cooling of the room. ipmitool sensor get NAME shows the limits."
    ),
    severity="medium",
    name="temperature",
    cost="hardware",
)

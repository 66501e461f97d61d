"""PCIe links repair errors all the time.

Why it matters: Bad packets are sent again, so nothing fails, but each repeat stops the link: bandwidth and latency suffer,
and a link that needs it often is on its way to fail. Averaged over the time since boot, an hour may hold a few dozen at most;
a burst soon after boot fades. DCGM alarms at 8 replays a minute.
Confirm by hand: grep . /sys/bus/pci/devices/BDF/aer_dev_correctable
Side effects of the fix: Reseating needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer ;
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html
"""

from nodetune.expect import AtLeast, AtMost
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View

NOT_THE_LINK = (
    "NonFatalErr",
    "Advisory Non-Fatal",
    "CorrIntErr",
    "Corrected Internal Error",
    "HeaderOF",
    "Header Log Overflow",
)


def observe(facts: View) -> dict[str, float]:
    hours = facts["host.uptime_s"] / 3600
    return {bdf: round(_of_the_link(counted) / hours, 1) for bdf, counted in facts["pci.aer"].items()}


def _of_the_link(counted: dict[str, dict[str, int]]) -> int:
    return sum(number for name, number in counted.get("correctable", {}).items() if name not in NOT_THE_LINK)


CHECK = Check(
    needs=("pci.aer", "host.uptime_s"),
    observe=observe,
    accept=AtMost(60),
    unit="errors an hour",
    applies=(When("host.uptime_s", AtLeast(600), "up for less than ten minutes: too early to tell"),),
    remedy=manual(
        "Reseat the device or its cable and riser, update its firmware and the platform's, and try another slot: an error that "
        "stays with the slot is the board's, one that moves along is the device's."
    ),
    severity="medium",
)

"""A PCIe device has frequent correctable errors.

Why it matters: The link resends bad packets, so nothing fails. Each resend stops the link and costs bandwidth and
latency, and a link that needs it often is about to fail. On average since boot, expect a few dozen errors per hour at
most; a burst soon after boot fades from the average. DCGM alarms at 8 replays a minute.
Confirm manually: grep . /sys/bus/pci/devices/BDF/aer_dev_correctable
Side effects of the fix: Reseating needs the machine off.
Sources: https://kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci-devices-aer ;
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html
"""

from nodetune.api import AtLeast, AtMost, Check, FactsView, When, manual

NOT_THE_LINK = (
    "NonFatalErr",
    "Advisory Non-Fatal",
    "CorrIntErr",
    "Corrected Internal Error",
    "HeaderOF",
    "Header Log Overflow",
)


def observe(facts: FactsView) -> dict[str, float]:
    hours = facts["host.uptime_s"] / 3600
    return {bdf: round(_of_the_link(counted) / hours, 1) for bdf, counted in facts["pci.aer"].items()}


def _of_the_link(counted: dict[str, dict[str, int]]) -> int:
    return sum(number for name, number in counted.get("correctable", {}).items() if name not in NOT_THE_LINK)


CHECK = Check(
    needs=("pci.aer", "host.uptime_s"),
    observe=observe,
    accept=AtMost(60),
    unit="errors per hour",
    applies=(When("host.uptime_s", AtLeast(600), "up for less than ten minutes: too early to judge"),),
    remedy=manual(
        "Reseat the device or its cable and riser, update its firmware and the platform's, and try another slot. If "
        "the errors stay with the slot, the board is faulty; if they follow the device, the device is."
    ),
    severity="medium",
    cost="hardware",
)

"""A network link receives damaged frames.

Why it matters: Checksum errors come from the physical layer: dirty optics, a bent cable, a failing port. Every damaged
frame is a lost packet, and RoCE answers a loss by resending a whole window.
Confirm manually: grep . /sys/class/net/*/statistics/rx_crc_errors; ethtool -m eth0
Side effects of the fix: Work on the cable takes the link down.
Sources: https://docs.kernel.org/networking/statistics.html ;
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net-statistics
"""

from nodetune.api import Check, Empty, manual
from nodetune.checks.shared.network_links import lost_share

CHECK = Check(
    needs=("net.links", "net.statistics"),
    observe=lost_share("rx_crc_errors", least=100, limit=1e-7, words="frames damaged"),
    accept=Empty("no more than one frame in ten million since boot"),
    remedy=manual(
        "Note rx_crc_errors, wait under load and read it again: only a growing count is a current fault. Clean or "
        "replace the optics and the cable, then try another switch port."
    ),
    severity="medium",
    cost="hardware",
)

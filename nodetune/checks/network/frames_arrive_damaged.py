"""Frames arrive damaged on a link.

Why it matters: Check-sum errors come from the physical side: dirty optics, a bent cable, a port that dies. Every
damaged frame is a lost packet, and RoCE answers a loss by sending a whole window again.
Confirm by hand: grep . /sys/class/net/*/statistics/rx_crc_errors; ethtool -m eth0
Side effects of the fix: Work on the cable takes the link down.
Sources: https://docs.kernel.org/networking/statistics.html ;
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net-statistics
"""

from nodetune.checks.network._links import lost_share
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    needs=("net.links", "net.statistics"),
    observe=lost_share("rx_crc_errors", least=100, limit=1e-7, words="frames damaged"),
    accept=Empty("no more than one frame in ten million since boot"),
    remedy=manual(
        "Note rx_crc_errors, wait under load, look again: only a growing number is a present fault. Clean or replace the "
        "optics and the cable, then try another switch port."
    ),
    severity="medium",
)

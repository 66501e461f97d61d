"""A network card dropped packets because the host did not take them in time.

Why it matters: Packets that arrive while the receive ring is full are lost: the ring is short, the queues are few,
or their interrupts sit on busy or distant CPUs. TCP slows down at each loss.
Confirm by hand: grep . /sys/class/net/*/statistics/rx_missed_errors
Side effects of the fix: Changing rings or queues restarts the link.
Sources: https://docs.kernel.org/networking/statistics.html ; https://docs.kernel.org/networking/scaling.html
"""

from nodetune.checks.network._links import in_use, share
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

LIMIT = 1e-5


def observe(facts: View) -> dict[str, str]:
    counted = facts["net.statistics"]
    return {name: _missed(counted[name]) for name in in_use(facts["net.links"]) if name in counted}


def _missed(counted: dict[str, int]) -> str:
    missed = counted.get("rx_missed_errors", 0)
    arrived = counted.get("rx_packets", 0) + missed
    if missed < 1000 or missed <= LIMIT * arrived:
        return ""
    return share(missed, arrived) + " packets missed"


CHECK = Check(
    needs=("net.links", "net.statistics"),
    observe=observe,
    accept=Empty("no more than one packet in 100000 since boot"),
    remedy=manual(
        "ethtool -G LINK rx MAXIMUM (see ethtool -g LINK), as many queues as local CPUs (ethtool -L), interrupts on the "
        "CPUs next to the card. Then watch whether rx_missed_errors still grows under load."
    ),
    severity="low",
)

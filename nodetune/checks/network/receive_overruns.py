"""A network card dropped packets because the host did not take them in time.

Why it matters: Packets that arrive while the receive ring is full are lost: the ring is short, the queues are few,
or their interrupts sit on busy or distant CPUs. TCP slows down at each loss.
Confirm by hand: grep . /sys/class/net/*/statistics/rx_missed_errors
Side effects of the fix: Changing rings or queues restarts the link.
Sources: https://docs.kernel.org/networking/statistics.html ; https://docs.kernel.org/networking/scaling.html
"""

from nodetune.checks.network._links import lost_share
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    needs=("net.links", "net.statistics"),
    observe=lost_share("rx_missed_errors", least=1000, limit=1e-5, words="packets missed"),
    accept=Empty("no more than one packet in 100000 since boot"),
    remedy=manual(
        "ethtool -G LINK rx MAXIMUM (see ethtool -g LINK), as many queues as local CPUs (ethtool -L), interrupts on the "
        "CPUs next to the card. Then watch whether rx_missed_errors still grows under load."
    ),
    severity="low",
)

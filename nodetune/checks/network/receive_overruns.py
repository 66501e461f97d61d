"""The receive ring of a network card overflowed.

Why it matters: The host does not take packets in time, and packets that arrive while the ring is full are lost. The
ring is short, the queues are few, or their interrupts run on busy or distant CPUs. TCP slows down at each loss.
Confirm manually: grep . /sys/class/net/*/statistics/rx_missed_errors
Side effects of the fix: Changing rings or queues restarts the link.
Sources: https://docs.kernel.org/networking/statistics.html ; https://docs.kernel.org/networking/scaling.html
"""

from nodetune.api import Check, Empty, manual
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT, lost_share

CHECK = Check(
    needs=("net.links", "net.statistics"),
    observe=lost_share("rx_missed_errors", least=DROPS_LEAST, limit=DROPS_LIMIT, words="packets missed"),
    accept=Empty("no more than one packet in 100000 since boot"),
    remedy=manual(
        "ethtool -G LINK rx MAXIMUM (see ethtool -g LINK), as many queues as local CPUs (ethtool -L), interrupts on "
        "the CPUs next to the card. Then check whether rx_missed_errors still grows under load."
    ),
    severity="low",
)

"""The input queue of a CPU (net.core.netdev_max_backlog) overflowed.

Why it matters: Another CPU or a virtual link handed packets to a CPU whose input queue was full. Too much traffic is
steered to too few CPUs. TCP takes the drops for congestion and slows down.
Confirm manually: cat /proc/net/softnet_stat (second column, hexadecimal, one line per CPU)
Side effects of the fix: A longer queue lets packets wait instead of being dropped.
Sources: https://docs.kernel.org/networking/scaling.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT, share


def observe(facts: FactsView) -> str:
    packets = facts["tcp.softnet"]
    if packets["dropped"] < DROPS_LEAST or packets["dropped"] <= DROPS_LIMIT * packets["processed"]:
        return ""
    return share(packets["dropped"], packets["processed"]) + " packets dropped"


CHECK = Check(
    needs=("tcp.softnet",),
    observe=observe,
    accept=Empty("no more than one packet in 100000 since boot"),
    remedy=manual(
        "sysctl -w net.core.netdev_max_backlog=16384 (and a file in /etc/sysctl.d). Spread receive packet steering "
        "over more CPUs (/sys/class/net/LINK/queues/rx-*/rps_cpus), or turn it off where the card has enough queues."
    ),
    severity="low",
    name="input queue",
)

"""Packets were dropped between the network driver and the protocol stack.

Why it matters: The input queue of a CPU was full when another CPU or a virtual link handed it packets: too much
traffic is steered to too few CPUs. TCP takes it for congestion and slows down.
Confirm by hand: cat /proc/net/softnet_stat (second column, hexadecimal, one line per CPU)
Side effects of the fix: A longer queue lets packets wait instead of being dropped.
Sources: https://docs.kernel.org/networking/scaling.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.checks.network._links import share
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

LIMIT = 1e-5


def observe(facts: View) -> str:
    seen = facts["tcp.softnet"]
    if seen["dropped"] < 1000 or seen["dropped"] <= LIMIT * seen["processed"]:
        return ""
    return share(seen["dropped"], seen["processed"]) + " packets dropped"


CHECK = Check(
    needs=("tcp.softnet",),
    observe=observe,
    accept=Empty("no more than one packet in 100000 since boot"),
    remedy=manual(
        "sysctl -w net.core.netdev_max_backlog=16384 (and a file in /etc/sysctl.d); spread receive packet steering over "
        "more CPUs (/sys/class/net/LINK/queues/rx-*/rps_cpus) or turn it off where the card has enough queues."
    ),
    severity="low",
)

"""The neighbour table has overflowed since boot.

Why it matters: Each refused entry is a connection that could not be made, to a random peer. Jobs fail to start or hang
in their first exchange, and nothing points to the network.
Confirm manually: dmesg | grep -i 'neighbor table overflow'; head -3 /proc/net/stat/arp_cache
Side effects of the fix: A larger table may hold a few more megabytes of kernel memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/Azure/azhpc-images/blob/master/components/hpc-tuning.sh
"""

from nodetune.api import Check, Equals, FactsView, manual


def observe(facts: FactsView) -> int:
    return int(facts["net.neighbours"]["table_fulls"])


CHECK = Check(
    needs=("net.neighbours",),
    observe=observe,
    accept=Equals(0),
    unit="refusals",
    remedy=manual(
        "sysctl -w net.ipv4.neigh.default.gc_thresh3=16384 net.ipv4.neigh.default.gc_thresh2=8192 "
        "net.ipv4.neigh.default.gc_thresh1=4096, and keep the three in /etc/sysctl.d. Find what fills the table: ip "
        "-s neigh | awk '{print $3}' | sort | uniq -c. The counter returns to 0 at the next boot."
    ),
    severity="medium",
    name="neighbour table",
    cost="setting",
)

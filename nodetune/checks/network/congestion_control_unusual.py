"""net.ipv4.tcp_congestion_control is not cubic, bbr or dctcp.

Why it matters: Cubic with the distribution's queueing discipline works well inside a data centre; BBR helps on long or
lossy paths, DCTCP where switches mark congestion. Others (reno most of all) recover slowly on fast links, and often
only mean that a module is missing. BBR does not need the fq discipline: since Linux 4.13, TCP paces by itself. Mixing
algorithms in one network is unfair to some flows, so the check asks for none of the three in particular.
Confirm manually: sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_available_congestion_control
Side effects of the fix: New connections only.
Sources: https://github.com/torvalds/linux/blob/master/net/ipv4/tcp_bbr.c ;
https://git.kernel.org/torvalds/c/218af599fa63 ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import Check, OneOf, sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.tcp_congestion_control",
    accept=OneOf(["cubic", "bbr", "dctcp"]),
    set="cubic",
    remedy=sysctl("net.ipv4.tcp_congestion_control"),
    severity="info",
)

"""TCP uses a congestion control other than cubic, BBR or DCTCP.

Why it matters: Cubic with the distribution's queueing discipline serves well inside a data centre; BBR helps on long
or lossy paths, DCTCP where switches mark congestion. Others (reno most of all) recover slowly on fast links, and
often only mean that a module is missing. BBR does not need the fq discipline: since Linux 4.13 TCP paces by itself.
Mixing algorithms in one network is unfair to some flows, so nothing here asks for one of the three.
Confirm by hand: sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_available_congestion_control
Side effects of the fix: New connections only.
Sources: https://github.com/torvalds/linux/blob/master/net/ipv4/tcp_bbr.c ;
https://git.kernel.org/torvalds/c/218af599fa63 ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.tcp_congestion_control",
    accept=OneOf(["cubic", "bbr", "dctcp"]),
    set="cubic",
    remedy=sysctl("net.ipv4.tcp_congestion_control"),
    severity="info",
)

"""Programs may queue any amount of unsent data in a TCP socket.

Why it matters: Data that lies unsent in the kernel costs memory and cache and adds delay for what comes after it,
and does not make the connection faster. A limit of 128 KiB lets a program write again just before the queue empties.
Confirm by hand: sysctl net.ipv4.tcp_notsent_lowat
Side effects of the fix: Programs wake more often to write; a little more CPU time per byte sent.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/redhat-performance/tuned (profile network-throughput)
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.tcp_notsent_lowat",
    accept=AtMost(131072),
    set=131072,
    unit="bytes",
    remedy=sysctl("net.ipv4.tcp_notsent_lowat"),
    severity="low",
)

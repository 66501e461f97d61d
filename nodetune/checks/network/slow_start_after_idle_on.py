"""net.ipv4.tcp_slow_start_after_idle is on.

Why it matters: Training traffic comes in bursts: a checkpoint, a batch, a gradient exchange over sockets. With slow
start after idle, each burst begins again with a window of a few packets. It needs many round trips to reach full
speed.
Confirm manually: sysctl net.ipv4.tcp_slow_start_after_idle
Side effects of the fix: A burst after a pause may meet a path that has become congested meanwhile.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/redhat-performance/tuned (profile network-throughput)
"""

from nodetune.api import Check, Equals, sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.tcp_slow_start_after_idle",
    accept=Equals(0),
    set=0,
    remedy=sysctl("net.ipv4.tcp_slow_start_after_idle"),
    severity="info",
)

"""Programs that wait in poll() and select() spin on the network card.

Why it matters: net.core.busy_poll makes a waiting program poll its network queue for some microseconds before it
sleeps. That saves a wake-up for latency-bound serving, and takes CPU time from data loaders and proxy threads on a
training node, whose heavy traffic goes over RDMA and gains nothing.
Confirm by hand: sysctl net.core.busy_poll
Side effects of the fix: Small messages over TCP wait a few microseconds longer; keep it for latency-bound serving.
Sources: https://docs.kernel.org/admin-guide/sysctl/net.html ;
https://github.com/redhat-performance/tuned (profiles hpc-compute and network-latency set 50)
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.core.busy_poll",
    accept=Equals(0),
    set=0,
    unit="us",
    remedy=sysctl("net.core.busy_poll", boot_default=0),
    severity="info",
)

"""Few connections may wait to be accepted.

Why it matters: A rendezvous store or a serving front end gets all its connections at once: every rank, every client.
What exceeds the queue of a listening socket is dropped and tried again a second or more later.
Confirm by hand: sysctl net.core.somaxconn
Side effects of the fix: None; a program still chooses its own queue below this limit when it calls listen().
Sources: https://docs.kernel.org/networking/ip-sysctl.html (somaxconn) ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.core.somaxconn",
    accept=AtLeast(2048),
    set=4096,
    unit="connections",
    remedy=sysctl("net.core.somaxconn"),
    severity="low",
)

"""net.core.somaxconn is too low.

Why it matters: A rendezvous store or a serving front end receives all its connections at once, from every rank or
every client. Requests beyond the queue of a listening socket are dropped and retried a second or more later.
Confirm manually: sysctl net.core.somaxconn
Side effects of the fix: None; a program still chooses its own queue below this limit when it calls listen().
Sources: https://docs.kernel.org/networking/ip-sysctl.html (somaxconn) ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.api import AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.net.core.somaxconn",
    accept=AtLeast(2048),
    set=4096,
    unit="connections",
    remedy=sysctl("net.core.somaxconn"),
    severity="low",
)

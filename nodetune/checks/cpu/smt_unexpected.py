"""Simultaneous multithreading is on for some cores only, or not what the site chose.

Why it matters: Whether cores run one thread or two is a policy of the site, and either is defensible. A host where cores
differ is not: ranks that get a shared core run slower than the rest, and what Slurm or the kubelet believe about the
CPUs is wrong. A site file may narrow what is accepted here to "on" or "off".
Confirm by hand: cat /sys/devices/system/cpu/smt/control; lscpu --extended=CPU,CORE,ONLINE
Side effects of the fix: Pinned jobs are disturbed, so do it on an idle node. ThreadsPerCore in slurm.conf and the
kubelet's CPU manager state must match afterwards.
Sources: https://docs.kernel.org/admin-guide/cputopology.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html (nosmt)
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="cpu.smt",
    accept=OneOf(["on", "off"]),
    remedy=manual(
        "On an idle node: echo on > /sys/devices/system/cpu/smt/control (or off). For the next boot add or remove nosmt "
        "on the kernel command line (or set it in the BIOS), then correct slurm.conf or the kubelet's state."
    ),
    severity="info",
)

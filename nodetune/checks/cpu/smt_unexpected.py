"""SMT differs between cores or from the site's policy.

Why it matters: Whether cores run one thread or two is a site policy, and both are reasonable. A host whose cores differ
is faulty: ranks on a shared core run slower than the rest, and Slurm and the kubelet assume a wrong CPU layout. A site
file may restrict the accepted value to "on" or "off".
Confirm manually: cat /sys/devices/system/cpu/smt/control; lscpu --extended=CPU,CORE,ONLINE
Side effects of the fix: The change disturbs pinned jobs, so make it on an idle node. ThreadsPerCore in slurm.conf and
the kubelet's CPU manager state must match afterwards.
Sources: https://docs.kernel.org/admin-guide/cputopology.html ;
https://docs.kernel.org/admin-guide/kernel-parameters.html (nosmt)
"""

from nodetune.api import Check, OneOf, manual

CHECK = Check(
    fact="cpu.smt",
    accept=OneOf(["on", "off"]),
    remedy=manual(
        "On an idle node: echo on > /sys/devices/system/cpu/smt/control (or off). For the next boot add or remove nosmt "
        "on the kernel command line (or set it in the BIOS), then correct slurm.conf or the kubelet's state."
    ),
    severity="info",
)

"""The NVIDIA persistence daemon may run on some CPUs only.

Why it matters: The daemon sets GPUs up on behalf of everyone, and what the driver allocates for them then comes from the
daemon's NUMA node. Pinned to one node (by AllowedCPUs= or a taskset in its unit) it does so for GPUs of the other node
too. Rarely worth more than knowing.
Confirm by hand: grep -E 'Cpus_allowed_list|Mems_allowed_list' /proc/$(pidof nvidia-persistenced)/status
Side effects of the fix: GPUs without other clients are set up anew when the daemon restarts.
Sources: https://docs.nvidia.com/deploy/driver-persistence/index.html ;
https://man7.org/linux/man-pages/man7/cpuset.7.html
"""

from nodetune.conditions import SEVERAL_NUMA_NODES
from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> int:
    """The number of CPUs that the daemon may run on."""
    return int(facts["numa.persistenced"]["cpu_count"])


CHECK = Check(
    observe=observe,
    needs=("numa.persistenced",),
    applies=(SEVERAL_NUMA_NODES,),
    accept=AtLeast(Ref("cpu.count")),
    unit="CPUs",
    remedy=manual(
        "systemctl show -p CPUAffinity -p AllowedCPUs -p NUMAMask nvidia-persistenced system.slice says what confines "
        "it. Remove that from the unit (systemctl edit nvidia-persistenced) and restart the daemon on an idle node."
    ),
    severity="info",
)

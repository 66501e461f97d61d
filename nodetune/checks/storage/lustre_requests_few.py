"""Lustre keeps too few requests in flight for each target.

Why it matters: A client keeps 8 requests in flight for each storage target by default. A host with many cores and a fast
network waits for the servers then, above all with files on one target. AWS sets 32 on clients with 64 CPUs and more, and
NVIDIA shows 32 for GPUDirect Storage.
Confirm manually: lctl get_param osc.*.max_rpcs_in_flight
Side effects of the fix: Many clients with more requests load the servers more: ask who runs them. Buffers of dirty data
grow along (max_dirty_mb). What mounts Lustre without fstab gets the setting at the next boot only.
Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/performance-tips.html ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/understanding-exascaler-file-system-performance.html
"""

from nodetune.api import AtLeast, Check, When, lustre_param
from nodetune.checks.storage._lustre import least

CHECK = Check(
    needs=("mounts.points", "lustre.osc"),
    observe=least("osc", "max_rpcs_in_flight"),
    accept=AtLeast(16),
    set=32,
    applies=(When("cpu.count", AtLeast(64), "fewer than 64 CPUs: the default suffices"),),
    unit="requests",
    remedy=lustre_param("osc.max_rpcs_in_flight"),
    severity="low",
)

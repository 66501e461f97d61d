"""The container that this ran in may not place memory on NUMA nodes.

Why it matters: Without CAP_SYS_NICE the calls that bind memory are refused. NCCL's host buffers then lie where the first
touch puts them, and releases before 2.26.5 fail to allocate them.
Confirm by hand: grep CapBnd /proc/self/status (bit 23), or: capsh --print | grep sys_nice
Side effects of the fix: The container may also raise its own priority.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://man7.org/linux/man-pages/man7/capabilities.7.html
"""

from nodetune.conditions import SEVERAL_NUMA_NODES
from nodetune.expect import Equals
from nodetune.model import Check, When
from nodetune.remedies import manual

CHECK = Check(
    fact="containers.sys_nice",
    accept=Equals(wanted=True),
    applies=(When("host.container", Equals(wanted=True), "not seen from inside a container"), SEVERAL_NUMA_NODES),
    remedy=manual("docker run --cap-add SYS_NICE; in a pod securityContext.capabilities.add: [SYS_NICE]"),
    severity="low",
)

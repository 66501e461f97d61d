"""The container lacks CAP_SYS_NICE, so it cannot bind memory.

Why it matters: Without CAP_SYS_NICE the kernel refuses the calls that bind memory to NUMA nodes in the container that
nodetune ran in. NCCL's host buffers are then placed by first touch. NCCL releases before 2.26.5 fail to allocate them.
Confirm manually: grep CapBnd /proc/self/status (bit 23), or: capsh --print | grep sys_nice
Side effects of the fix: The container may also raise its own priority.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://man7.org/linux/man-pages/man7/capabilities.7.html
"""

from nodetune.api import SEVERAL_NUMA_NODES, Check, Equals, When, manual

CHECK = Check(
    fact="containers.sys_nice",
    accept=Equals(wanted=True),
    applies=(When("host.container", Equals(wanted=True), "not inside a container"), SEVERAL_NUMA_NODES),
    remedy=manual("Docker: docker run --cap-add SYS_NICE. Pod: securityContext.capabilities.add: [SYS_NICE]"),
    severity="low",
    name="CAP_SYS_NICE",
)

"""NUMA nodes have memory and no CPUs.

Why it matters: On Grace superchips, the driver may give the memory of each GPU to the kernel as a node of its own; CXL
memory looks the same. The kernel may then place ordinary pages there, and programs that count all memory as that of the
host are wrong: the kubelet among them. Whether that is wanted depends on the programs, so the check only reports it.
Confirm manually: numactl -H
Side effects of the fix: Programs can no longer reach memory of a GPU with malloc and NUMA policies. Needs a reboot.
Sources: https://developer.nvidia.com/blog/understanding-memory-management-on-hardware-coherent-platforms ;
https://github.com/kubernetes/enhancements/issues/5726 ;
https://docs.nvidia.com/datacenter/tesla/tesla-release-notes-580-65-06/index.html (CDMM)
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.foundation import text


def observe(facts: FactsView) -> dict[str, str]:
    """Return the size of the memory of each node without CPUs, with the GPU to which it belongs."""
    gpus = {str(number): f" of {gpu}" for gpu, number in facts.readable("gpu.numa_node_id", {}).items()}
    return {
        f"node{name}": "" if node["cpu_count"] else f"{text.size(node['memory_kb'] * 1024)}{gpus.get(name, '')}"
        for name, node in facts["numa.nodes"].items()
        if node["memory_kb"]
    }


CHECK = Check(
    observe=observe,
    needs=("numa.nodes", "gpu.numa_node_id"),
    accept=Empty("memory on nodes with CPUs only"),
    remedy=manual(
        "Leave it if programs use it. On Kubernetes, NVIDIA recommends to keep the memory in the driver (R580 or newer): "
        "NVreg_CoherentGPUMemoryMode=driver in modprobe.d, then reboot."
    ),
    severity="info",
)

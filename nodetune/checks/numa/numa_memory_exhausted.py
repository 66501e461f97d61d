"""One NUMA node has no free memory while another has plenty.

Why it matters: Work on the full node gets its memory from the far one, and the kernel reclaims pages of the full node
again and again. Usual causes are a job step that outlived its job, files in /dev/shm, and static huge pages that all
came from one node.
Confirm manually: numastat -m | grep -E 'Node|MemFree|FilePages|Shmem'
Side effects of the fix: Whatever uses the memory ends.
Sources: https://docs.kernel.org/admin-guide/numastat.html ;
https://docs.kernel.org/admin-guide/mm/numa_memory_policy.html
"""

from nodetune.api import SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual

NEARLY_NONE = 2
PLENTY = 30


def observe(facts: FactsView) -> dict[str, object]:
    """Return each node without available memory (page cache counts as free), if another node has plenty."""
    nodes = {name: node for name, node in facts["numa.nodes"].items() if node["cpu_count"] and node["memory_kb"]}
    share = {name: 100 * node["available_kb"] // node["memory_kb"] for name, node in nodes.items()}
    best = max(share.values(), default=0)
    full = {name for name in share if share[name] < NEARLY_NONE and best >= PLENTY}
    return {f"node{name}": f"{share[name]} % available, another has {best} %" if name in full else [] for name in share}


CHECK = Check(
    observe=observe,
    needs=("numa.nodes",),
    applies=(SEVERAL_NUMA_NODES,),
    accept=Empty("memory available on every node"),
    remedy=manual(
        "Find what uses it: numastat -p $(pgrep -d ' ' .) | sort -nk2 | tail; du -xsh /dev/shm; grep . "
        "/sys/devices/system/node/node*/hugepages/*/nr_hugepages. End leftover processes, remove stale files, and spread huge "
        "pages over the nodes."
    ),
    severity="low",
)

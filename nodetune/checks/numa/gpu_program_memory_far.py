"""A program may take memory only from NUMA nodes that are far from its GPU.

Why it matters: Its buffers then lie behind the link between the processors: each copy to and from the GPU crosses it. A numactl
--membind or --preferred in another order than that of the GPUs does this, and so does a cpuset of Slurm or a container. Programs
that interleave over several nodes did so on purpose and are not reported.
Healthy exception: On one NUMA node nothing is far. A node without CPUs is memory of a GPU or CXL.
Confirm manually: nvidia-smi topo -m; head -1 /proc/PID/numa_maps; grep Mems_allowed_list /proc/PID/status
Side effects of the fix: The program must be started again.
Sources: https://docs.kernel.org/admin-guide/mm/numa_memory_policy.html ; https://man7.org/linux/man-pages/man5/numa.5.html ;
https://man7.org/linux/man-pages/man8/numactl.8.html ; https://docs.nvidia.com/deploy/nvml-api/api/group__nvmlAffinity.html
"""

from __future__ import annotations

from typing import Any

from nodetune.api import GPU, SEVERAL_NUMA_NODES, Check, Empty, FactsView, Unread, manual
from nodetune.checks.numa import _program_places as places


def observe(facts: FactsView) -> dict[str, str | Unread]:
    with_cpus = {node for node, each in facts["numa.nodes"].items() if each["cpus"]}
    return {name: _fault(program, near, with_cpus) for name, program, near in places.programs(facts) if near}


def _fault(program: dict[str, Any], near: set[str], with_cpus: set[str]) -> str | Unread:
    from nodetune.onhost import cpu_list  # here: most hosts run no program on a GPU

    policy = program.get("policy")
    kind, _, bound = (policy or "").partition(":")
    lists = {"the allowed nodes": program.get("mems"), kind: bound if kind.startswith(("bind", "prefer")) else ""}
    for says, nodes in lists.items():
        taken = {str(node) for node in cpu_list.parse_or_empty(nodes or "")}
        if taken and taken <= with_cpus - near:
            where = f"{', '.join(program['gpus'])} is next to node {', '.join(sorted(near, key=int))}"
            return f"memory of node {nodes} ({says}), while {where}"
    return "" if policy and program.get("mems") else Unread("its memory policy is not to be seen")


CHECK = Check(
    needs=places.NEEDS,
    observe=observe,
    accept=Empty("memory next to the GPU"),
    applies=(GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "numactl --membind with the node of the rank's GPU (nvidia-smi topo -m), or --localalloc with pinned CPUs. Slurm: srun "
        "--mem-bind=local. Docker: docker run --cpuset-mems. Kubernetes: memoryManagerPolicy Static with topologyManagerPolicy."
    ),
    severity="low",
    cost="bandwidth",
)

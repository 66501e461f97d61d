"""A program may use only, or half and more, CPUs that are far from its GPU.

Why it matters: Each copy between host and GPU, and each launch of a kernel, then crosses the link between the processors, always
or whenever the kernel moves the program there. Nobody pinned it, or a launcher pinned ranks in another order than that of the
GPUs, or Slurm or a container gave it a set of CPUs without regard to them. By PyTorch's documentation, binding mostly gains 1 to
10 %, so this is a hint. Not reported: programs
that only watch GPUs, and those on a GPU in MIG mode that have a near CPU.
Healthy exception: On one NUMA node, or where the firmware does not say where a GPU is, nothing is far. Neither are other nodes of
the same processor.
Confirm manually: nvidia-smi topo -m; grep Cpus_allowed_list /proc/PID/status
Side effects of the fix: The program must be started again.
Sources: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpuset ; https://docs.pytorch.org/docs/main/elastic/numa.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ignore-cpu-affinity
"""

from nodetune.api import GPU, SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual
from nodetune.checks.numa import _program_places as places


def observe(facts: FactsView) -> dict[str, str]:
    from nodetune.onhost import cpu_list  # here: most hosts run no program on a GPU

    cpus = {node: set(cpu_list.parse_or_empty(each["cpus"])) for node, each in facts["numa.nodes"].items()}
    modes, found = facts.readable("gpu.mig_mode", {}), {}
    for name, program, nodes in places.programs(facts):
        near = set().union(*(cpus[node] for node in nodes))
        allowed = set(cpu_list.parse_or_empty(program["cpus"])) & set().union(*cpus.values())
        mig = any(modes.get(gpu) == "enabled" for gpu in program["gpus"])
        far = near and len(allowed & near) * 2 <= len(allowed) and not (mig and allowed & near)
        text = f"CPUs {program['cpus']}, while {', '.join(program['gpus'])} is next to {cpu_list.fold(sorted(near))}"
        found[name] = text if far else ""
    return found


CHECK = Check(
    needs=(*places.NEEDS, "gpu.mig_mode"),
    observe=observe,
    accept=Empty("mostly CPUs next to the GPU"),
    applies=(GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Slurm: srun --gpu-bind=closest with cores in gres.conf (AutoDetect=nvml). torchrun --numa-binding=node. mpirun: numactl "
        "--cpunodebind for each rank, by nvidia-smi topo -m. Docker: docker run --cpuset-cpus. Kubernetes: topologyManagerPolicy "
        "single-numa-node. A service of systemd 244 or newer: systemctl edit NAME, [Service] NUMAPolicy=preferred, NUMAMask=NODE, "
        "CPUAffinity=numa; then restart it."
    ),
    severity="low",
    cost="bandwidth",
)

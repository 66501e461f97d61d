"""A program may use only CPUs that are far from its GPU.

Why it matters: Each copy between host and GPU, and each launch of a kernel, then crosses the link between the processors.
A launcher that pins ranks in another order than that of the GPUs does this, and so does a container with a fixed cpuset. A
program that may use at least one CPU next to one of its GPUs is not reported.
Healthy exception: On one NUMA node, or where the firmware does not say where a GPU is, nothing is far.
Confirm manually: nvidia-smi topo -m; grep Cpus_allowed_list /proc/PID/status
Side effects of the fix: The program must be started again.
Sources: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpuset ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ignore-cpu-affinity
"""

from nodetune.api import GPU, SEVERAL_NUMA_NODES, Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    from nodetune.onhost import cpu_list  # here: most hosts run no program on a GPU

    nodes, devices, places = facts["numa.nodes"], facts["pci.devices"], facts["gpu.bdf"]
    found = {}
    for pid, program in facts["gpu.process_settings"].items():
        of = {gpu: devices.get(places.get(gpu, ""), {}).get("numa_node") for gpu in program["gpus"]}
        near = [cpu_list.parse_or_empty(nodes[str(node)]["cpus"]) for node in of.values() if str(node) in nodes]
        apart = near and all(near) and not set(cpu_list.parse_or_empty(program["cpus"])) & set().union(*near)
        text = f"CPUs {program['cpus']}, while {', '.join(of)} is next to {cpu_list.fold(sorted(set().union(*near)))}"
        found[f"{program['name']} ({pid})"] = text if apart else ""
    return found


CHECK = Check(
    needs=("gpu.process_settings", "gpu.bdf", "pci.devices", "numa.nodes"),
    observe=observe,
    accept=Empty("a CPU next to the GPU"),
    applies=(GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "Slurm: srun --gpu-bind=closest with cores in gres.conf (AutoDetect=nvml). torchrun and mpirun: numactl --cpunodebind for each "
        "rank, by nvidia-smi topo -m. Docker: docker run --cpuset-cpus. Kubernetes: topologyManagerPolicy single-numa-node. "
        "A service of systemd 244 or newer: systemctl edit NAME, [Service] NUMAPolicy=preferred, NUMAMask=NODE, CPUAffinity=numa; then restart it."
    ),
    severity="low",
    cost="bandwidth",
)

"""gres.conf assigns CPU cores of another socket to a GPU.

Why it matters: Slurm prefers for a job the cores that gres.conf names for its GPUs. With cores of the other socket, every
copy between host and GPU crosses the link between the sockets, and nothing says so. Cores= counts Slurm's own way: core 0 is the
first of the first socket, whatever the kernel's numbers. Lists of the kernel's CPU numbers are the usual mistake.
Confirm manually: slurmd -G; lstopo-no-graphics -l; nvidia-smi topo -m
Side effects of the fix: slurmctld and slurmd restart (jobs survive).
Sources: https://slurm.schedmd.com/gres.conf.html (Cores) ; https://docs.kernel.org/PCI/sysfs-pci.html
"""

from __future__ import annotations

from nodetune.api import GPU, SEVERAL_NUMA_NODES, SLURM, Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared import slurm_cores


def observe(facts: FactsView) -> dict[str, str] | Absent:
    listed = {}
    for line in facts["slurm.gres"].get("lines", ()):
        cores = slurm_cores.numbers(line["cores"])
        listed.update(dict.fromkeys(slurm_cores.minors(line["file"]) if cores else [], cores))
    near = slurm_cores.near(facts)
    found = {f"/dev/nvidia{minor}": _far(cores, near[minor][1]) for minor, cores in listed.items() if minor in near}
    return found or Absent("gres.conf lists no cores for /dev/nvidia files")


def _far(cores: list[int], socket: range) -> str:
    outside = sum(1 for core in cores if core not in socket)
    return f"{outside} of its {len(cores)} cores, its socket has {socket[0]}-{socket[-1]}" if outside else ""


CHECK = Check(
    needs=("slurm.gres", *slurm_cores.NEEDS),
    observe=observe,
    accept=Empty("cores of the GPU's own socket"),
    applies=(SLURM, GPU, SEVERAL_NUMA_NODES),
    remedy=manual(
        "nodetune plan --scheduler-diff FILE writes the lines for gres.conf; restart slurmctld and slurmd. AutoDetect=nvml "
        "instead of the list works only where slurmd -G then lists the GPUs."
    ),
    severity="low",
)

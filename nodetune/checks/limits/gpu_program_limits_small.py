"""A running GPU program has small limits of locked or shared memory.

Why it matters: Its memlock limit, or the /dev/shm of its container (64 MiB by Docker's default), is what counts for a program,
whatever the host allows. NCCL's RDMA buffers then fail (ibv_reg_mr failed), data loaders die with a bus error, and NCCL
cannot extend /dev/shm/nccl-. A program that uses neither loses nothing, so this is a hint.
Confirm manually: grep locked /proc/PID/limits; nsenter -t PID -m df -h /dev/shm
Side effects of the fix: The program must be started again.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.docker.com/reference/cli/docker/container/run/#shm-size
"""

from typing import Any

from nodetune.api import GPU, Check, Empty, FactsView, manual

DOCKERS_DEFAULT = 64 << 20


def observe(facts: FactsView) -> dict[str, str]:
    rdma = bool(facts.get("rdma.ports", {}))
    programs = facts["gpu.process_settings"].items()
    return {f"{program['name']} ({pid})": ", ".join(_small(program, rdma)) for pid, program in programs}


def _small(program: dict[str, Any], rdma: bool) -> list[str]:
    """Return the limits that are too small; one that is not to be seen is not."""
    locked = program["memlock"]
    of_memory = rdma and not program["may_lock"] and locked not in (None, "unlimited")
    shared = program["shm_bytes"] is not None and program["shm_bytes"] <= DOCKERS_DEFAULT
    return [f"memlock {locked} bytes"] * of_memory + ["/dev/shm of 64 MiB or less"] * shared


CHECK = Check(
    needs=("gpu.process_settings", "rdma.ports"),
    observe=observe,
    accept=Empty("limits for RDMA and data loaders"),
    applies=(GPU,),
    remedy=manual(
        "Docker: docker run --ulimit memlock=-1 --shm-size=16g (or --ipc=host). Kubernetes: securityContext.capabilities.add: "
        "[IPC_LOCK], and an emptyDir with medium: Memory at /dev/shm. Slurm: the limits of slurmd (memlock-limited)."
    ),
    severity="info",
)

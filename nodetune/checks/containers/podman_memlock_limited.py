"""podman limits locked memory below what RDMA needs.

Why it matters: default_ulimits in containers.conf sets the limit of every container that is started without --ulimit. NCCL's
first RDMA buffer fails (ibv_reg_mr failed) in such a container. Without a line, a container inherits the limit of what
starts it: other checks judge that.
Confirm manually: podman run --rm busybox sh -c 'ulimit -l'; grep -r memlock /etc/containers
Side effects of the fix: New containers may lock all memory.
Sources: https://man.archlinux.org/man/containers.conf.5.en.raw ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.api import CONTAINERS, RDMA, Check, FactAbsentError, FactsView, OneOf, engine_conf


def observe(facts: FactsView) -> str:
    """Return the soft limit, as it is written."""
    if "podman" not in facts["containers.engines"]:
        raise FactAbsentError("podman is not installed")
    limit = facts["containers.podman"]["memlock"]
    if limit is None:
        raise FactAbsentError("containers.conf sets no limit of locked memory")
    return str(limit).partition(":")[0]


CHECK = Check(
    needs=("containers.engines", "containers.podman"),
    observe=observe,
    accept=OneOf(["-1", "unlimited"]),
    applies=(CONTAINERS, RDMA),
    set="-1:-1",
    remedy=engine_conf("podman memlock"),
    severity="low",
    name="podman memlock",
)

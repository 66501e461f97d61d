"""Docker's memlock limit is too low for RDMA.

Why it matters: A container gets the limit from the run command or from daemon.json, otherwise the limit of containerd.
With 8 MiB, NCCL's first RDMA buffer fails (ibv_reg_mr failed) in every container that was started without --ulimit.
Confirm manually: docker run --rm busybox sh -c 'ulimit -l'
Side effects of the fix: Docker restarts. New containers may lock all memory.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file
"""

from collections.abc import Mapping
from typing import Any

from nodetune.api import RDMA, Absent, Check, Each, Equals, FactsView, Unread, Value, docker_daemon


def observe(facts: FactsView) -> Any:
    """Return the default in daemon.json, otherwise the limit of containerd."""
    wanted = facts["containers.docker"].get("default-ulimits", {}).get("memlock")
    if isinstance(wanted, Mapping):
        soft = {str(key).lower(): each for key, each in wanted.items()}.get("soft")
        return "unlimited" if soft == -1 else soft
    limits = facts.fact("limits.memlock")
    inherited = limits.of.get("containerd", Absent("containerd is not running")) if isinstance(limits, Each) else limits
    if isinstance(inherited, Value):
        return inherited.value["soft"]
    return inherited if isinstance(inherited, (Absent, Unread)) else Absent()


CHECK = Check(
    needs=("containers.docker", "limits.memlock"),
    observe=observe,
    accept=Equals("unlimited"),
    set={"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}},
    applies=(RDMA,),
    unit="bytes",
    remedy=docker_daemon("default-ulimits"),
    part_of="memlock-limited",
    severity="medium",
    name="Docker memlock",
)

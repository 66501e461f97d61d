"""Docker's containers get too little shared memory.

Why it matters: The default is 64 MiB. NCCL ends with "failed to extend /dev/shm/nccl-..." and PyTorch's data loaders die
with a bus error in each container that was started without --shm-size or --ipc=host.
Confirm by hand: docker run --rm busybox df -h /dev/shm
Side effects of the fix: Docker restarts. Memory is used only as it is written to.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file
"""

import re

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import docker_daemon
from nodetune.view import View

DEFAULT = "64m"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def observe(facts: View) -> int | str:
    """Bytes; Docker's documented default where daemon.json says nothing."""
    text = str(facts["containers.docker"].get("default-shm-size", DEFAULT)).lower()
    found = re.fullmatch(r"([\d.]+)\s*([bkmgt]?)i?b?", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else text


CHECK = Check(
    needs=("containers.docker",),
    observe=observe,
    accept=AtLeast(1 << 30),
    set="16g",
    applies=(GPU_ON_PCI,),
    unit="bytes",
    remedy=docker_daemon("default-shm-size"),
    severity="low",
)

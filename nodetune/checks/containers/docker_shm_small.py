"""Docker's default /dev/shm size is too small.

Why it matters: The default is 64 MiB. In each container that was started without --shm-size or --ipc=host, NCCL fails
with "failed to extend /dev/shm/nccl-..." and PyTorch's data loaders die with a bus error. The check judges only a Docker
that gives containers GPUs, and none on a node with a kubelet, which starts pods without it.
Confirm manually: docker run --rm busybox df -h /dev/shm
Side effects of the fix: Docker restarts. Shared memory uses RAM only when data is written to it.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file
"""

from __future__ import annotations

import re

from nodetune.api import GPU_ON_PCI, AtLeast, Check, Equals, FactAbsentError, FactsView, When, docker_daemon

DEFAULT = "64m"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def observe(facts: FactsView) -> int | str:
    """Return the size in bytes, or Docker's documented default if daemon.json does not set it."""
    docker = facts["containers.docker"]
    if "nvidia" not in docker.get("runtimes", ()) and not facts["containers.cdi"]:
        raise FactAbsentError("Docker gives no container a GPU")
    text = str(docker.get("default-shm-size", DEFAULT)).lower()
    found = re.fullmatch(r"([\d.]+)\s*([bkmgt]?)i?b?", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else text


CHECK = Check(
    needs=("containers.docker", "containers.cdi"),
    observe=observe,
    accept=AtLeast(1 << 30),
    set="16g",
    applies=(GPU_ON_PCI, When("kubernetes.present", Equals(wanted=False), "the kubelet starts the containers")),
    unit="bytes",
    remedy=docker_daemon("default-shm-size"),
    severity="info",
    name="Docker /dev/shm",
)

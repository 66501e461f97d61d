"""A container may run too few processes and threads.

Why it matters: The limit counts threads. Eight ranks with data loaders, OpenMP and NCCL threads start thousands on a host
with hundreds of cores, and fail with "Resource temporarily unavailable". podman allows 2048 for each container by
default. podman is judged where it is the only engine next to the NVIDIA Container Toolkit: distributions install it by
default.
Confirm manually: podman run --rm busybox cat /sys/fs/cgroup/pids.max; grep -r pids_limit /etc/crio /etc/containers
Side effects of the fix: CRI-O restarts; containers go on. A kubelet is left to you (podPidsLimit). A container that starts processes without end is stopped later. Running ones keep their limit.
Sources: https://docs.podman.io/en/v4.4/markdown/options/pids-limit.html ;
https://man.archlinux.org/man/containers.conf.5.en.raw ;
https://github.com/scervantes-stratio/kubespray/blob/master/docs/cri-o.md
"""

from __future__ import annotations

from nodetune.api import CONTAINERS, GPU_ON_PCI, Absent, Check, Empty, FactsView, engine_conf

PODMANS_DEFAULT = 2048
MIN_PROCESSES = 16384


def observe(facts: FactsView) -> dict[str, str] | Absent:
    """Return the limit of each engine that has one; an unknown limit is not judged."""
    limits = {"podman": _podman(facts), "CRI-O": facts.get("containers.crio", {}).get("pids_limit")}
    settings = (facts.get("kubernetes.kubelet") or {}).get("settings", {})
    of_pod = str(settings.get("podPidsLimit", ""))
    limits["kubelet"] = int(of_pod) if of_pod.lstrip("-").isdecimal() else None
    found = {name: _few(limit) for name, limit in limits.items() if limit is not None}
    return found or Absent("no engine limits the processes of a container")


def _podman(facts: FactsView) -> int | None:
    alone = set(facts["containers.engines"]) == {"podman"} and facts.get("containers.toolkit") is not None
    if not alone:
        return None
    limit = facts.get("containers.podman", {}).get("pids_limit")
    return PODMANS_DEFAULT if limit is None else int(limit)


def _few(limit: int) -> str:
    """Format a limit that is too low; 0 and less are no limit."""
    return f"{limit} processes" if 0 < limit < MIN_PROCESSES else ""


CHECK = Check(
    needs=("containers.engines", "containers.toolkit", "containers.podman", "containers.crio", "kubernetes.kubelet"),
    observe=observe,
    accept=Empty("at least 16384, or no limit"),
    applies=(CONTAINERS, GPU_ON_PCI),
    set=65536,
    remedy=engine_conf("pids_limit"),
    severity="low",
)

"""IMEX is not ready for multi-node NVLink.

Why it matters: On GB200, GB300 and VR200 racks, GPUs of different nodes share memory through the IMEX service, and a job
needs a channel device that its user may write. Without either, NCCL ends with CUDA error 800 (operation not permitted)
or does not use NVLink between nodes. Kubernetes' DRA driver and Slurm make a channel for each job, and may start the
service with it: there the check judges only a service that is enabled or has failed.
Healthy exception: Slurm may start the service with each job.
Confirm manually: nvidia-imex-ctl -N; ls -l /dev/nvidia-caps-imex-channels
Side effects of the fix: Restarting IMEX ends jobs that share memory across nodes.
Sources: https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/cmdservice.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from __future__ import annotations

from nodetune.api import GPU, NOT_CONTAINER, Check, Empty, FactAbsentError, FactsView, repair
from nodetune.checks.services._units import running
from nodetune.checks.shared.gpu_peers import RACKS


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    names = facts["gpu.names"].values()
    if len(names) < 2 or not any(map(RACKS.search, names)):
        raise FactAbsentError("no GPU of a multi-node NVLink system")
    scheduled = facts["kubernetes.present"] or facts["slurm.present"]
    unit = facts.get("services.nvidia-imex") or {}
    if scheduled and unit.get("enabled") != "enabled" and unit.get("active") != "failed":
        raise FactAbsentError("the scheduler starts IMEX where a job needs it")
    problems = {}
    if not running(facts, ["nvidia-imex"]) and not facts["services.processes"].get("nvidia-imex"):
        problems["nvidia-imex"] = "not running"
    channels = facts.get("services.imex_channels", {})
    if not scheduled and not any(int(mode[-1]) & 2 for mode in channels.values()):
        problems["IMEX channel"] = "not writable by users" if channels else "no device file"
    return problems or []


CHECK = Check(
    needs=(
        "gpu.names",
        "services.nvidia-imex",
        "services.processes",
        "services.imex_channels",
        "kubernetes.present",
        "slurm.present",
    ),
    observe=observe,
    accept=Empty("IMEX running and a channel that users may write"),
    applies=(GPU, NOT_CONTAINER),
    remedy=repair(
        "List the rack's nodes in /etc/nvidia-imex/nodes_config.cfg on each of them; systemctl enable --now "
        "nvidia-imex. For a channel at boot: options nvidia NVreg_CreateImexChannel0=1 in /etc/modprobe.d. A "
        "scheduler that makes channels for each job (Slurm's switch/nvidia_imex, the DRA driver) needs none."
    ),
    severity="high",
)

"""DCGM is not running.

Why it matters: DCGM detects throttling, ECC errors and NVLink errors while jobs run, and serves diagnostics and
exporters. Without it, the first sign of a degrading GPU is a failed job.
Confirm manually: systemctl status nvidia-dcgm; pgrep -a 'nv-hostengine|dcgm-exporter'
Side effects of the fix: It is a client of every GPU: stop it before a MIG mode change or a GPU reset, and pause its
profiling (dcgmi profile --pause) while Nsight collects.
Sources: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/getting-started.html ;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from nodetune.api import GPU_ON_PCI, NOT_CONTAINER, Check, Equals, FactsView, manual
from nodetune.checks.services._units import running

UNITS = ("nvidia-dcgm", "dcgm", "nvidia-dcgm-exporter")


def observe(facts: FactsView) -> str:
    """Count an engine inside a container (an exporter on Kubernetes) too."""
    processes = facts["services.processes"]
    found = running(facts, UNITS) or [name for name in ("nv-hostengine", "dcgm-exporter") if name in processes]
    return "running" if found else "not running"


CHECK = Check(
    needs=("services.processes", *(f"services.{unit}" for unit in UNITS)),
    observe=observe,
    accept=Equals("running"),
    applies=(GPU_ON_PCI, NOT_CONTAINER),
    remedy=manual("Install datacenter-gpu-manager from NVIDIA's repository, then: systemctl enable --now nvidia-dcgm"),
    severity="low",
    name="DCGM",
)

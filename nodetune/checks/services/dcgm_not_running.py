"""DCGM does not watch the GPUs.

Why it matters: It is what notices throttling, ECC trouble and NVLink errors while jobs run, and what diagnostics and
exporters ask. Without it a degrading GPU is found by the job that fails on it.
Confirm by hand: systemctl status nvidia-dcgm; pgrep -a 'nv-hostengine|dcgm-exporter'
Side effects of the fix: It is a client of every GPU: stop it before a MIG mode change or a GPU reset, and pause its
profiling (dcgmi profile --pause) while Nsight collects.
Sources: https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/getting-started.html ;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
"""

from nodetune.checks.services._units import running
from nodetune.conditions import GPU_ON_PCI, NOT_CONTAINER
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

UNITS = ("nvidia-dcgm", "dcgm", "nvidia-dcgm-exporter")


def observe(facts: View) -> str:
    """An engine inside a container (an exporter on Kubernetes) counts."""
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
)

"""A process uses a GPU on a host that should be idle.

Why it matters: A process that outlived its job keeps memory and time of the GPU from the next one. Audits run on busy
nodes too: this is judged only where a profile wants the host idle (after draining, in an epilog).
Confirm by hand: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv
Side effects of the fix: Ending a process loses its work.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

KINDS = ("gpu.compute_running_processes", "gpu.graphics_running_processes")


def observe(facts: View) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind in KINDS:
        for name, processes in facts.get(kind, {}).items():
            found.setdefault(name, []).extend(f"{each['name'] or 'process'} ({each['pid']})" for each in processes)
    return found


CHECK = Check(
    needs=KINDS,
    observe=observe,
    accept=Empty("no process on any GPU"),
    applies=(GPU,),
    remedy=manual(
        "Find the owner with ps -o user,pid,etime,cmd -p PID; end the process only when no job owns it any more."
    ),
    severity="high",
)

"""A process uses a GPU on a host that should be idle.

Why it matters: A process that outlived its job takes GPU memory and time from the next job. Audits also run on busy
nodes, so the check applies only where a profile requires an idle host (after draining, in an epilog).
Healthy exception: The check is off in every profile, because GPUs of a node with jobs are in use. A GPU may also list
no processes at all.
Confirm manually: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv
Side effects of the fix: Ending a process loses its work.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual

KINDS = ("gpu.compute_running_processes", "gpu.graphics_running_processes")


def observe(facts: FactsView) -> dict[str, list[str]]:
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
        "Find the owner with ps -o user,pid,etime,cmd -p PID. End the process only if no job owns it any more."
    ),
    severity="high",
)

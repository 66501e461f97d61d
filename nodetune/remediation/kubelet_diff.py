"""The proposed changes to the configuration of the kubelet: see scheduler_diff.py."""

from __future__ import annotations

from nodetune.api.facts_view import FactsView
from nodetune.foundation import text
from nodetune.onhost import cpu_list

DRAINED = (
    "# kubectl drain NODE first: pods lose their cores. Then systemctl stop kubelet && rm -f /var/lib/kubelet/cpu_manager_state, change",
    "# the file, and systemctl start kubelet: with the old state file it does not start. lscpu -e shows the cores of the reserved CPUs.",
)
MAX_NUMA_NODES = 8
"""With more, the kubelet does not start under a policy of the topology manager (before 1.31: under none of them)."""
NEEDS = ("kubernetes.kubelet", "cpu.smt", "numa.node_count", "numa.nodes", "pci.gpus")


def changes(facts: FactsView) -> tuple[str, list[str]]:
    """Return the managers that place a pod's cores next to its GPUs, and a core of each NUMA node for the system."""
    kubelet = facts["kubernetes.kubelet"]
    settings, lines = kubelet["settings"], []
    if not facts["pci.gpus"]:
        return kubelet["file"], []
    if settings.get("cpuManagerPolicy", "none") != "static":
        lines += _replaced("cpuManagerPolicy", settings.get("cpuManagerPolicy"), "static")
    if not settings.get("reservedSystemCPUs") and (cores := _first_cores(facts)):
        lines.append(f'+reservedSystemCPUs: "{cores}"')
    topology = settings.get("topologyManagerPolicy")
    if facts["numa.node_count"] > 1 and topology not in ("best-effort", "restricted"):
        lines += _replaced("topologyManagerPolicy", topology, "best-effort")
        if facts["numa.node_count"] > MAX_NUMA_NODES and not settings.get("topologyManagerPolicyOptions"):
            nodes = int(facts["numa.node_count"])
            lines += ["+topologyManagerPolicyOptions:", f'+  max-allowable-numa-nodes: "{nodes}"']
    return kubelet["file"], [*DRAINED, *lines] if lines else []


def _first_cores(facts: FactsView) -> str:
    """Return the first core of each NUMA node that has some, with its second thread: Linux numbers these after all cores."""
    threads = {"off": 1, "on": 2}.get(facts.readable("cpu.smt", ""), 0)
    lists = [node.get("cpus", "") for node in facts.readable("numa.nodes", {}).values()]
    parts = [part for each in lists if each for part in each.split(",")[:threads]]
    return str(cpu_list.fold(cpu_list.parse(part)[0] for part in parts))


def _replaced(name: str, now: str | None, wanted: str) -> list[str]:
    return ([f"-{name}: {text.plain(now, 200)}"] if now is not None else []) + [f"+{name}: {wanted}"]

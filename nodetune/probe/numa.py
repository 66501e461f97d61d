"""NUMA layout: nodes, their CPUs and memory, and distances: `numa.*`."""

import re

from nodetune.onhost import cpu_list

from . import read

NODES = "/sys/devices/system/node"
FIELD = re.compile(r"^Node \d+ (\w+(?:\(\w+\))?):\s+(\d+)", re.MULTILINE)
AVAILABLE = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")


def collect(names, step):
    step(NODES)
    nodes = _nodes()
    yield "nodes", nodes
    yield "node_count", _node_count(nodes)
    yield "distances", read.tried(_distances)


def _numbers():
    return sorted(int(name[4:]) for name in read.names_in(NODES) if re.match(r"node\d+$", name))


def _nodes():
    """Return {"0": {"cpus", "cpu_count", "memory_kb", "free_kb", "available_kb"}}.

    Memory of GPUs and CXL forms a node without CPUs.
    """
    try:
        found = {str(number): _node("{}/node{}".format(NODES, number)) for number in _numbers()}
    except (OSError, KeyError, ValueError) as problem:
        return read.unread("{}: {}".format(NODES, read.why(problem) if isinstance(problem, OSError) else repr(problem)))
    return read.value(found) if found else read.absent("this kernel has no NUMA nodes")


def _node(folder):
    info = {name: int(size) for name, size in FIELD.findall(read.text(folder + "/meminfo"))}
    cpus = cpu_list.parse(read.text(folder + "/cpulist"))
    return {
        "cpus": cpu_list.fold(cpus),
        "cpu_count": len(cpus),
        "memory_kb": info["MemTotal"],
        "free_kb": info["MemFree"],
        "available_kb": min(info["MemTotal"], sum(info.get(name, 0) for name in AVAILABLE)),
    }


def _node_count(nodes):
    """Count the nodes with CPUs: only these matter for the placement of work."""
    if "value" not in nodes:
        return nodes
    return read.value(sum(1 for node in nodes["value"].values() if node["cpu_count"]))


def _distances():
    """Return {"0": [10, 32]}: the distances reported by the firmware; 10 is local."""
    rows = {str(number): read.text("{}/node{}/distance".format(NODES, number)) for number in _numbers()}
    if not rows:
        return read.absent("this kernel has no NUMA nodes")
    return read.value({number: [int(part) for part in row.split()] for number, row in rows.items()})

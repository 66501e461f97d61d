"""NUMA layout: nodes, their CPUs and memory, distances, and where the NVIDIA persistence daemon may run: `numa.*`."""

import re

from . import read

NODES = "/sys/devices/system/node"
FIELD = re.compile(r"^Node \d+ (\w+(?:\(\w+\))?):\s+(\d+)", re.MULTILINE)
AVAILABLE = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
PERSISTENCED = "/run/nvidia-persistenced/nvidia-persistenced.pid"


def collect(names, step):
    step(NODES)
    nodes = _nodes()
    yield "nodes", nodes
    yield "node_count", _node_count(nodes)
    yield "distances", _distances()
    step("nvidia-persistenced")
    yield "persistenced", _persistenced()


def _numbers():
    return sorted(int(name[4:]) for name in read.names_in(NODES) if re.match(r"node\d+$", name))


def _nodes():
    """{"0": {"cpus", "cpu_count", "memory_kb", "free_kb", "available_kb"}}: memory of GPUs and CXL is a node without CPUs."""
    try:
        found = {str(number): _node("{}/node{}".format(NODES, number)) for number in _numbers()}
    except (OSError, KeyError, ValueError) as problem:
        return read.unread("{}: {}".format(NODES, read.why(problem) if isinstance(problem, OSError) else repr(problem)))
    return read.value(found) if found else read.absent("this kernel knows no NUMA nodes")


def _node(folder):
    info = {name: int(size) for name, size in FIELD.findall(read.text(folder + "/meminfo"))}
    cpus = read.cpu_list(read.text(folder + "/cpulist"))
    return {
        "cpus": read.fold_cpus(cpus),
        "cpu_count": len(cpus),
        "memory_kb": info["MemTotal"],
        "free_kb": info["MemFree"],
        "available_kb": min(info["MemTotal"], sum(info.get(name, 0) for name in AVAILABLE)),
    }


def _node_count(nodes):
    """The nodes that have CPUs: only between those can work be near or far."""
    if "value" not in nodes:
        return nodes
    return read.value(sum(1 for node in nodes["value"].values() if node["cpu_count"]))


def _distances():
    """{"0": [10, 32]}: as the firmware states them, 10 is local."""
    try:
        rows = {str(number): read.text("{}/node{}/distance".format(NODES, number)) for number in _numbers()}
    except OSError as problem:
        return read.unread("{}: {}".format(NODES, read.why(problem)))
    if not rows:
        return read.absent("this kernel knows no NUMA nodes")
    return read.value({number: [int(part) for part in row.split()] for number, row in rows.items()})


def _persistenced():
    """{"pid", "cpus", "memory_nodes"} that the persistence daemon is confined to."""
    pid = read.file_fact(PERSISTENCED, int)
    if "value" not in pid:
        return pid if "unread" in pid else read.absent("nvidia-persistenced does not run here")
    try:
        status = dict(
            re.findall(r"^(\w+):[ \t]*(.*)$", read.text("/proc/{}/status".format(pid["value"])), re.MULTILINE)
        )
        if not status["Name"].startswith("nvidia-persiste"):
            return read.absent("nvidia-persistenced does not run here (its process file is stale)")
        cpus, nodes = status["Cpus_allowed_list"].strip(), status["Mems_allowed_list"].strip()
    except FileNotFoundError:
        return read.absent("nvidia-persistenced does not run here (its process file is stale)")
    except (OSError, KeyError) as problem:
        return read.unread("status of nvidia-persistenced: {}".format(problem))
    return read.value({"pid": pid["value"], "cpus": cpus, "cpu_count": len(read.cpu_list(cpus)), "memory_nodes": nodes})

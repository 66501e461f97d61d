"""Which cores, as Slurm counts them, are near each GPU."""

from __future__ import annotations

import re

from nodetune.api import FactAbsentError, FactsView

NEEDS = ("gpu.bdf", "gpu.minor_number", "pci.devices", "numa.nodes", "cpu.cores", "cpu.sockets")

MAX_CORES = 4096
MAX_CORES = 512
"""Signs of a list: a hostile host must not make millions of numbers of one."""
FILE = re.compile(r"/dev/nvidia(?:(\d{1,3})|\[([\d,-]{1,64})\])")


def near(facts: FactsView) -> dict[int, tuple[range, range]]:
    """Return minor number of a GPU → cores of its NUMA node, cores of its socket.

    Slurm numbers cores socket by socket, whatever the numbers of the kernel. Raise FactAbsentError where the NUMA nodes do
    not share the cores evenly, so that the numbers of a node's cores are unknown.
    """
    nodes = sorted(int(name) for name, node in facts["numa.nodes"].items() if node["cpu_count"])
    cores, sockets = int(facts["cpu.cores"]), int(facts["cpu.sockets"])
    counts = {facts["numa.nodes"][str(node)]["cpu_count"] for node in nodes}
    if not nodes or not sockets or len(counts) > 1 or cores % len(nodes) or len(nodes) % sockets or cores > MAX_CORES:
        raise FactAbsentError("the NUMA nodes do not share the cores evenly")
    of_node, of_socket = cores // len(nodes), cores // sockets
    found = {}
    for minor, node in _nodes(facts).items():
        if node in nodes:
            first = nodes.index(node) * of_node
            socket = first // of_socket * of_socket
            found[minor] = (range(first, first + of_node), range(socket, socket + of_socket))
    return found


def _nodes(facts: FactsView) -> dict[int, int]:
    """Return minor number → NUMA node."""
    devices, bdfs, minors = facts["pci.devices"], facts["gpu.bdf"], facts["gpu.minor_number"]
    known = {minors[gpu]: devices[bdf]["numa_node"] for gpu, bdf in bdfs.items() if bdf in devices and gpu in minors}
    return {minor: node for minor, node in known.items() if node is not None}


def minors(file: str) -> list[int]:
    """Return the GPUs that File= of a line in gres.conf names: /dev/nvidia[0-3,6]; empty if it is not of that form."""
    found = []
    for plain, ranges in FILE.findall(file[:MAX_CORES]):
        found += [int(plain)] if plain else numbers(ranges)
    return found


def numbers(text: str) -> list[int]:
    """Return the numbers of `0-3,8`; empty if it is not of that form."""
    from nodetune.onhost import cpu_list  # here: most hosts have no such list

    found: list[int] = cpu_list.parse_or_empty(text, MAX_CORES)
    return found

"""NUMA nodes: find their CPUs and memory, and bind a thread and its allocations to one of them."""

import ctypes
import errno
import os
import platform
import re

from nodetune.onhost import cpu_list, files

from . import report

NODES = "/sys/devices/system/node"
SYSCALLS = {
    "x86_64": {"set_mempolicy": 238, "get_mempolicy": 239},
    "aarch64": {"set_mempolicy": 237, "get_mempolicy": 236},
    "ppc64le": {"set_mempolicy": 261, "get_mempolicy": 260},
}
MPOL_DEFAULT, MPOL_BIND = 0, 2
MPOL_F_NODE, MPOL_F_ADDR = 1, 2
MAX_NODES = 1024
ALLOWED = frozenset(os.sched_getaffinity(0))
"""The CPUs that this process may use, read before any function here restricts them."""


def numbers():
    """Return the nodes of this machine, with or without CPUs; empty if the kernel has none."""
    return sorted(int(name[4:]) for name in files.names(NODES) if re.match(r"node\d+$", name))


def nodes():
    """Return {node: [CPUs that this process may use]}, only nodes with such CPUs; {0: all of them} without NUMA."""
    found = {}
    for number in numbers():
        cpus = [cpu for cpu in cpu_list.parse(files.text("{}/node{}/cpulist".format(NODES, number))) if cpu in ALLOWED]
        if cpus:
            found[number] = cpus
    return found or {0: sorted(ALLOWED)}


def cores(cpus):
    """Sort the CPUs so that one thread of each core comes first, then the others."""
    seen, first, others = set(), [], []
    for cpu in cpus:
        threads = files.text("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list".format(cpu)) or str(cpu)
        (others if threads in seen else first).append(cpu)
        seen.add(threads)
    return first, others


def free_bytes(node):
    """Return the available memory of a node: free memory and reclaimable page cache."""
    text = files.text("{}/node{}/meminfo".format(NODES, node))
    if not text:
        return int(re.search(r"MemAvailable:\s+(\d+)", files.text("/proc/meminfo")).group(1)) << 10
    sizes = {name: int(kb) for name, kb in re.findall(r"(\w+(?:\(\w+\))?):\s+(\d+) kB", text)}
    return sum(sizes.get(name, 0) for name in ("MemFree", "Inactive(file)", "SReclaimable")) << 10


def distance(one, other):
    """Return the distance from the firmware: 10 is local; None if unknown."""
    try:
        return int(files.text("{}/node{}/distance".format(NODES, one)).split()[numbers().index(other)])
    except (ValueError, IndexError):
        return None


def run_on(cpus):
    """Keep this thread on these CPUs."""
    os.sched_setaffinity(0, cpus)


def allocate_on(node):
    """Make memory that this thread touches from now on come from this node, or fail. None: the default policy.

    Raise report.MeasurementError if the kernel does not allow it.
    """
    if node is not None and not numbers():
        return
    mask = (ctypes.c_ulong * (MAX_NODES // 64))()
    if node is not None:
        mask[node // 64] = 1 << (node % 64)
    mode = MPOL_DEFAULT if node is None else MPOL_BIND
    problem = _call(
        "set_mempolicy", mode, ctypes.byref(mask) if node is not None else None, MAX_NODES if node is not None else 0
    )
    if problem == errno.EPERM:
        raise report.MeasurementError(
            "this container forbids memory policies: run it on the host, or with CAP_SYS_NICE"
        )
    if problem and problem != errno.ENOSYS:  # a kernel without NUMA has nothing to choose
        raise report.MeasurementError("memory of NUMA node {}: {}".format(node, os.strerror(problem)))


def node_of(address):
    """Return the node of the page at a (touched) address, or None if unknown."""
    found = ctypes.c_int(-1)
    problem = _call("get_mempolicy", ctypes.byref(found), None, 0, ctypes.c_void_p(address), MPOL_F_NODE | MPOL_F_ADDR)
    return None if problem else found.value


def gpu_node(bdf):
    """Return the NUMA node of a PCI device (`00000000:18:00.0` or `0000:18:00.0`), or None if unknown."""
    domain, _, rest = bdf.lower().partition(":")
    try:
        return files.number("/sys/bus/pci/devices/{:04x}:{}/numa_node".format(int(domain, 16), rest))
    except ValueError:  # not an address
        return None


def _call(name, *arguments):
    """Make a system call by number (libnuma is rarely installed). Return its errno, or 0."""
    number = SYSCALLS.get(platform.machine(), {}).get(name)
    if number is None:
        return errno.ENOSYS
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(
        ctypes.c_long(number), *[ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    )
    return ctypes.get_errno() if done < 0 else 0

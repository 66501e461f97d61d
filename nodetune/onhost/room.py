"""Whether this process has the room that NVML needs: without it NVML tells of lost GPUs, or of none at all."""

import mmap
import resource

FILES = 256
"""Open files: eight GPUs take about a hundred. With too few, NVML counts no GPU and calls it a success (seen: H200)."""
BYTES = 256 << 20
"""Address space: NVML takes 200 MiB (seen: H200, driver 580)."""


def make():
    """Lift the limits of this process as far as it may. The kernel lets root lift each."""
    unlimited = resource.RLIM_INFINITY
    for limit, wanted in (
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_AS, unlimited),
        (resource.RLIMIT_DATA, unlimited),
    ):
        soft, hard = resource.getrlimit(limit)
        if soft != unlimited and not 0 < wanted <= soft:
            _set(limit, wanted) or _set(limit, hard)


def lacking():
    """Return what there is too little of, in words; empty if there is enough."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= most < FILES:
        return "this process may open only {} files".format(most)
    try:
        mmap.mmap(-1, BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return "this process cannot get {} MiB of memory".format(BYTES >> 20)
    return ""


def _set(limit, wanted):
    try:
        resource.setrlimit(limit, (wanted, wanted))
    except (OSError, ValueError):
        return False
    return True

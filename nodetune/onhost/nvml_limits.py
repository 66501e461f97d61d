"""The limits of a process that NVML needs: with lower ones, it reports lost GPUs or no GPUs."""

import mmap
import resource

FILES = 256
"""Open files: eight GPUs take about a hundred. With too few, NVML counts no GPUs and returns success (seen: H200)."""
BYTES = 256 << 20
"""Address space: NVML takes 200 MiB (seen: H200, driver 580)."""


def lift():
    """Raise the limits of this process as far as allowed. Root may raise all of them."""
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
    """Describe the resource that is insufficient; empty if there is enough."""
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

"""The work of a busy node during some seconds, as averages: `watch.*`. Reads only, and touches no job.

`watch.seconds.30` asks for a window of 30 s; its value is the length that the window had.
"""

import time

from nodetune.onhost.nvml import explain
from . import gpu, read, watch_gpu, watch_host, watch_processes

SECONDS = "seconds."
STEP_SECONDS = 1.0
"""Distance of the samples of GPUs: 0.13 ms each (seen: H100)."""
LOOK_SECONDS = 0.2
SPARED = 100
"""After a look at the processes, at least this many times its duration passes: they cost 1 % of a core at most."""


def collect(names, step):
    asked = next(name for name in names if name.startswith(SECONDS))
    library, _, facts = gpu.opened(step)
    if facts:
        fact = dict(facts)["nvml"]
        lacking = "absent" in fact and gpu.has_gpu()
        yield "gpus", read.unread("this host has GPUs and no NVIDIA driver that answers") if lacking else fact
        return
    try:
        yield from _watched(library, asked, step)
    finally:
        library.nvmlShutdown()


def _watched(library, asked, step):
    step("nvmlDeviceGetCount")
    try:
        count = library.nvmlDeviceGetCount()
    except library.NVMLError as problem:
        yield "gpus", read.unread("NVML: " + explain(problem))
        return
    devices, refused = gpu.open_all(library, count, step)
    gpus = [watch_gpu.Gpu(device) for device in devices]
    step("the processes on the GPUs")
    processes = watch_processes.Processes({each.name: each.users() for each in gpus})
    host = watch_host.Host()
    seconds = _window(float(asked[len(SECONDS) :]), gpus, processes, step)
    found = {each.name: each.fact(seconds) for each in gpus}
    found.update({name: read.unread(text) for name, (text, _) in refused.items()})
    yield asked, read.value(round(seconds, 3))
    yield "gpus", read.each(found)
    step("the processes on the GPUs")
    yield "processes", read.value(processes.told())
    yield "host", read.value(host.told(seconds))
    step("the names of their users")
    yield "users", read.value(processes.users())


def _window(wanted, gpus, processes, step):
    """Look at GPUs and processes until the window is over. Return its length."""
    step("{} GPUs, for {:g} s".format(len(gpus), wanted))
    start = time.monotonic()
    _look(gpus)
    at = 1
    while True:
        began = time.monotonic()
        if began - start >= wanted:
            break
        processes.look()
        if began - start >= at * STEP_SECONDS:
            _look(gpus)
            at = int((began - start) / STEP_SECONDS) + 1
        spent = time.monotonic() - began
        time.sleep(max(0.0, min(max(LOOK_SECONDS, SPARED * spent), start + wanted - time.monotonic())))
    _look(gpus)
    return time.monotonic() - start


def _look(gpus):
    for each in gpus:
        each.look()

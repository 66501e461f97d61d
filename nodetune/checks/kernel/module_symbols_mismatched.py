"""A kernel module does not load: it was built against another version of a module that it uses.

Why it matters: The kernel refuses it ("disagrees about version of symbol"), mostly nvidia_peermem after RDMA drivers were
installed or updated next to the NVIDIA driver. What needs the module takes a slower way without a message: NCCL then
needs dma-buf for GPUDirect RDMA. The check counts this boot, without modules that were loaded since.
Confirm manually: journalctl -k -b | grep 'disagrees about version'; lsmod | grep peermem
Side effects of the fix: Loading a rebuilt module disturbs nobody.
Sources: https://github.com/NVIDIA/gpu-operator/issues/2868 ; https://github.com/Mellanox/nv_peer_memory/issues/39 ;
https://github.com/torvalds/linux (kernel/module/version.c)
"""

from __future__ import annotations

from math import inf

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import UPTIME, ago, require_read

EVENTS = "kernel_log.symbol_mismatches"


def observe(facts: FactsView) -> dict[str, str] | str:
    require_read(facts, EVENTS)
    uptime, loaded = facts.readable(UPTIME), facts.readable("modules.loaded", ())
    return {
        module: f"{each['symbol']} has another version, {ago(uptime and max(0.0, uptime - each['time']))}"
        for module, each in facts[EVENTS].items()
        if module not in loaded
    } or ""


CHECK = Check(
    needs=(EVENTS, "kernel_log.lockups", "modules.loaded", UPTIME),
    observe=observe,
    log=inf,
    accept=Empty("no module refused"),
    remedy=manual(
        "Build the module again against the drivers that are installed (dkms autoinstall; in a container, a driver image that "
        "has the RDMA drivers' headers), and load it. With the open kernel modules on Linux 5.12 or newer, nvidia_peermem is "
        "not needed: stop loading it."
    ),
    severity="low",
    name="kernel module",
)

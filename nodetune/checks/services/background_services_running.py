"""Services that a compute node does not need are running.

Why it matters: Each of them wakes cores at its own times, scans disks or refreshes caches. A collective across many
nodes waits for the node that was disturbed. A graphical login screen also uses GPU memory.
Confirm manually: systemctl list-units --type=service --state=running
Side effects of the fix: The service is no longer available: keep those that this site uses.
Sources: https://dl.acm.org/doi/10.1145/1048935.1050204 ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux_for_real_time/9/html/optimizing_rhel_9_for_real_time_for_low_latency_operation/
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, Check, Empty, FactsView, manual

NEEDLESS = {
    "ModemManager": "probes serial ports for modems",
    "abrtd": "watches for crashes and collects them",
    "apport": "collects crash reports, core dumps included",
    "avahi-daemon": "announces the host on the local network",
    "bluetooth": "not needed in a rack",
    "colord": "colour profiles of screens",
    "cups": "printing",
    "cups-browsed": "looks for printers",
    "gdm": "a login screen uses GPU memory",
    "gdm3": "a login screen uses GPU memory",
    "geoclue": "determines where the host is",
    "kerneloops": "sends kernel messages to a collector",
    "lightdm": "a login screen uses GPU memory",
    "packagekit": "refreshes package lists in the background",
    "sddm": "a login screen uses GPU memory",
    "switcheroo-control": "switches between a laptop's GPUs",
    "whoopsie": "sends crash reports",
}


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    running = {unit.removesuffix(".service") for unit in facts["services.running"]}
    return {name: reason for name, reason in NEEDLESS.items() if name in running} or []


CHECK = Check(
    needs=("services.running",),
    observe=observe,
    accept=Empty("only services that this node needs"),
    applies=(GPU_ON_PCI,),
    remedy=manual("For each service that this site does not use: systemctl disable --now NAME"),
    severity="info",
)

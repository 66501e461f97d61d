"""Services that a compute node does not need are running.

Why it matters: Each of them wakes cores at its own times, scans disks or refreshes caches. A collective across many
nodes waits for the node that was disturbed. A graphical login screen also uses GPU memory.
Confirm manually: systemctl list-units --type=service --state=running
Side effects of the fix: The service is no longer available. Its socket, if it has one, fails when a program asks for it.
Sources: https://dl.acm.org/doi/10.1145/1048935.1050204 ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux_for_real_time/9/html/optimizing_rhel_9_for_real_time_for_low_latency_operation/
"""

from __future__ import annotations

from collections.abc import Iterable

from nodetune.api import GPU_ON_PCI, SYSTEMD, Check, Empty, FactsView, service

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


def observe(facts: FactsView) -> dict[str, str]:
    """Return the names of those that run, each of which a site file may accept."""
    running = {unit.removesuffix(".service") for unit in facts["services.running"]}
    return {name: name for name in NEEDLESS if name in running}


def cause(facts: FactsView, subjects: Iterable[str]) -> str:  # noqa: ARG001
    """Return what they do."""
    return "; ".join(f"{name}: {NEEDLESS[name]}" for name in subjects)


CHECK = Check(
    needs=("services.running",),
    observe=observe,
    cause=cause,
    accept=Empty("only services that this node needs"),
    absent="pass",
    applies=(SYSTEMD, GPU_ON_PCI),
    remedy=service(
        disruption="service restart",
        steps="For each service that this site does not use: systemctl disable --now NAME. Or have apply stop and mask them: the site "
        "file says accept: {one_of: [avahi-daemon, cups]} for those that stay, and set: masked.",
    ),
    severity="info",
    name="background services",
)

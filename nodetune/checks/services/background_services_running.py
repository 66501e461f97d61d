"""Services run that a compute node does not need.

Why it matters: Each wakes up cores at its own times, scans disks or refreshes caches; a collective operation of many
nodes waits for the one that was disturbed. A graphical login screen also holds memory of a GPU.
Confirm by hand: systemctl list-units --type=service --state=running
Side effects of the fix: What the service did is gone: keep those that this site uses.
Sources: https://dl.acm.org/doi/10.1145/1048935.1050204 ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux_for_real_time/9/html/optimizing_rhel_9_for_real_time_for_low_latency_operation/
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

NEEDLESS = {
    "ModemManager": "probes serial ports for modems",
    "abrtd": "watches for crashes and collects them",
    "apport": "collects crashed programs, whole memory images included",
    "avahi-daemon": "announces the host in the local network",
    "bluetooth": "no use for it in a rack",
    "colord": "colour profiles of screens",
    "cups": "printing",
    "cups-browsed": "looks for printers",
    "gdm": "a login screen holds memory of a GPU",
    "gdm3": "a login screen holds memory of a GPU",
    "geoclue": "looks up where the host is",
    "kerneloops": "sends kernel messages to a collector",
    "lightdm": "a login screen holds memory of a GPU",
    "packagekit": "refreshes package lists in the background",
    "sddm": "a login screen holds memory of a GPU",
    "switcheroo-control": "switches between a laptop's GPUs",
    "whoopsie": "sends crash reports",
}


def observe(facts: View) -> dict[str, str] | list[str]:
    running = {unit.removesuffix(".service") for unit in facts["services.running"]}
    return {name: reason for name, reason in NEEDLESS.items() if name in running} or []


CHECK = Check(
    needs=("services.running",),
    observe=observe,
    accept=Empty("only what this node's work needs"),
    applies=(GPU_ON_PCI,),
    remedy=manual("For each one that this site does not use: systemctl disable --now NAME"),
    severity="low",
)

"""Automatic updates may reboot the host by themselves.

Why it matters: The updater knows nothing of jobs: a training run of hundreds of nodes ends because one of them
installed a kernel at night.
Confirm by hand: apt-config dump | grep Automatic-Reboot (RHEL: grep reboot /etc/dnf/automatic.conf)
Side effects of the fix: Reboots for new kernels have to be planned, through the scheduler.
Sources: https://documentation.ubuntu.com/server/how-to/software/automatic-updates/ ;
https://dnf.readthedocs.io/en/latest/automatic.html
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

UPDATERS = {"updates.apt": "unattended-upgrades", "updates.dnf": "dnf-automatic"}


def observe(facts: View) -> dict[str, str] | list[str]:
    updaters = {title: facts.get(name, {}) for name, title in UPDATERS.items()}
    found = {title: "reboots" for title, seen in updaters.items() if seen.get("enabled") and seen["reboots"]}
    return found or []


CHECK = Check(
    needs=tuple(UPDATERS),
    observe=observe,
    accept=Empty("no reboot without a person or the scheduler"),
    remedy=manual(
        'Debian and Ubuntu: Unattended-Upgrade::Automatic-Reboot "false"; in a file of /etc/apt/apt.conf.d that sorts last. '
        "RHEL: reboot = never in /etc/dnf/automatic.conf. Reboot through the scheduler (scontrol reboot, kubectl drain)."
    ),
    severity="medium",
)

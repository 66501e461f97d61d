"""Automatic updates may reboot the host.

Why it matters: The updater does not know about jobs. A training run on hundreds of nodes ends because one of them
installed a kernel at night.
Confirm manually: apt-config dump | grep Automatic-Reboot (RHEL: grep reboot /etc/dnf/automatic.conf)
Side effects of the fix: Reboots for new kernels must be planned, through the scheduler.
Sources: https://documentation.ubuntu.com/server/how-to/software/automatic-updates/ ;
https://dnf.readthedocs.io/en/latest/automatic.html
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactsView, manual

UPDATERS = {"updates.apt": "unattended-upgrades", "updates.dnf": "dnf-automatic"}


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    updaters = {title: facts.get(name, {}) for name, title in UPDATERS.items()}
    found = {title: "reboots" for title, updater in updaters.items() if updater.get("enabled") and updater["reboots"]}
    return found or []


CHECK = Check(
    needs=tuple(UPDATERS),
    observe=observe,
    accept=Empty("reboots only by an administrator or the scheduler"),
    remedy=manual(
        'Debian and Ubuntu: Unattended-Upgrade::Automatic-Reboot "false"; in a file in /etc/apt/apt.conf.d that sorts '
        "last. RHEL: reboot = never in /etc/dnf/automatic.conf. Reboot through the scheduler (scontrol reboot, "
        "kubectl drain)."
    ),
    severity="medium",
)

"""An NVMe controller did not answer in time.

Why it matters: Each such request waited for the whole time limit (30 s by default) before the driver aborted it, reset
the controller, or found its answer without an interrupt. Reading data and writing checkpoints stalls for all jobs.
Repeated resets end with a controller that is removed. The check counts the last week of this boot.
Confirm manually: journalctl -k -b | grep -E 'nvme.*(timeout|will reset)'
Side effects of the fix: None: it only reports.
Sources: https://docs.aws.amazon.com/ebs/latest/userguide/timeout-nvme-ebs-volumes.html ;
https://github.com/torvalds/linux/blob/master/drivers/nvme/host/pci.c (nvme_timeout)
"""

from __future__ import annotations

from collections import defaultdict

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, recent, times


def observe(facts: FactsView) -> dict[str, str] | str:
    of = defaultdict(list)
    for each in recent(facts, "kernel_log.nvme"):
        of[each["controller"]].append(each)
    return {name: times(mine, mine[-1]["text"]) for name, mine in sorted(of.items())} or ""


CHECK = Check(
    needs=("kernel_log.nvme", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no timeout"),
    remedy=manual(
        "Compare the drive's firmware with the vendor's newest (nvme list), and read its health (nvme smart-log, nvme "
        "error-log). If only one drive of several does so, reseat or replace it. On EBS volumes, raise the time limit."
    ),
    severity="medium",
    cost="hardware",
    part_of="nvme-controller-not-live",
)

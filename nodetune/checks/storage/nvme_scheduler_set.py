"""An NVMe drive uses an I/O scheduler.

Why it matters: NVMe drives have deep queues for every CPU; a scheduler in front of them only adds locking. "none" is
the kernel's own choice for drives with several queues, so something has changed it.
Confirm manually: grep . /sys/block/nvme*/queue/scheduler
Side effects of the fix: Limits of cgroups that rely on a scheduler (io.weight with bfq) no longer work on the drive.
Sources: https://docs.kernel.org/block/switching-sched.html ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/monitoring_and_managing_system_status_and_performance/setting-the-disk-scheduler_monitoring-and-managing-system-status-and-performance
"""

from nodetune.api import Check, Equals, FactsView, block_queue
from nodetune.checks.storage._udev import set_by_udev, with_next_boot

RULES = "block.scheduler_rule"


def observe(facts: FactsView) -> dict[str, str]:
    schedulers = facts["block.scheduler"]
    now = {
        disk: schedulers[disk]
        for disk, about in facts["block.disks"].items()
        if about["type"] == "nvme" and disk in schedulers
    }
    return with_next_boot(facts, RULES, now, "none".__eq__)


CHECK = Check(
    needs=("block.disks", "block.scheduler", RULES),
    observe=observe,
    cause=set_by_udev(RULES, "block.scheduler"),
    accept=Equals("none"),
    set="none",
    remedy=block_queue("scheduler"),
    severity="low",
)

"""A hard disk runs without a scheduler that spares its head.

Why it matters: A turning disk serves requests in the order in which they come unless someone sorts them; mixed reads and
writes then starve one another.
Confirm by hand: grep . /sys/block/sd*/queue/scheduler
Side effects of the fix: None known.
Sources: https://docs.kernel.org/block/switching-sched.html ;
https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/monitoring_and_managing_system_status_and_performance/setting-the-disk-scheduler_monitoring-and-managing-system-status-and-performance
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import block_queue
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    schedulers = facts["block.scheduler"]
    turning = [
        disk
        for disk, seen in facts["block.disks"].items()
        if seen["rotational"] and seen["type"] in ("sata", "sas", "scsi")
    ]
    return {disk: schedulers[disk] for disk in turning if disk in schedulers}


CHECK = Check(
    needs=("block.disks", "block.scheduler"),
    observe=observe,
    accept=OneOf(["mq-deadline", "bfq"]),
    set="mq-deadline",
    applies=(BARE_METAL,),
    remedy=block_queue("scheduler"),
    severity="info",
)

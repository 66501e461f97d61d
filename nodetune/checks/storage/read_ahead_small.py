"""read_ahead_kb of a data disk is too small for streaming.

Why it matters: Training reads large files from start to end. With the default of 128 KiB, the disk sits idle between
small requests; a few MiB keep it busy. The tuned profiles for throughput and HPC set 4096 KiB.
Confirm manually: findmnt -no SOURCE /data; cat /sys/block/DISK/queue/read_ahead_kb
Side effects of the fix: Random reads of small records (memory-mapped embeddings, key-value stores) fetch more than they use.
A profile of tuned with a fixed readahead sets its own again at the next boot: change it there.
Sources: https://github.com/redhat-performance/tuned (profiles throughput-performance, hpc-compute) ;
https://docs.kernel.org/admin-guide/abi-stable.html (read_ahead_kb)
"""

from nodetune.api import AtLeast, Check, FactsView, block_queue
from nodetune.checks.storage._places import data
from nodetune.checks.storage._udev import set_by_udev, with_next_boot

RULES = "block.read_ahead_rule"
ENOUGH = 4096
TUNED = "derived.tuned_settings"
OWN_READ_AHEAD = ("btrfs",)
"""File systems over several disks, which do not follow the disk's setting."""


def observe(facts: FactsView) -> dict[str, int]:
    mounts = data(facts["mounts.points"]).values()
    disks = {mount["disk"] for mount in mounts if mount["disk"] and mount["type"] not in OWN_READ_AHEAD}
    current = facts["mounts.read_ahead_kb"]
    now = {disk: current[disk] for disk in sorted(disks & set(current))}
    return with_next_boot(facts, RULES, now, lambda value: value >= ENOUGH)


def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
    """Name the udev rule that sets it, and the profile of tuned that sets it again after each boot."""
    return "; ".join(filter(None, (set_by_udev(RULES, "mounts.read_ahead_kb")(facts, subjects), _set_by_tuned(facts))))


def _set_by_tuned(facts: FactsView) -> str:
    told = facts.readable(TUNED, {}).get("disk", {}).get("readahead", "")
    if not told[:1].isdigit():  # `>4096` lowers nothing
        return ""
    return f"tuned's profile {facts['services.tuned_profile']['name']} sets readahead={told} again at each boot: set it there"


CHECK = Check(
    needs=(
        "mounts.points",
        "mounts.read_ahead_kb",
        RULES,
        "services.tuned_profile",
        TUNED,
    ),
    observe=observe,
    cause=cause,
    accept=AtLeast(ENOUGH),
    set=ENOUGH,
    unit="KiB",
    remedy=block_queue("read_ahead_kb"),
    severity="low",
)

"""A network card sent nothing for a while, or reports that its slot supplies too little power.

Why it matters: When a transmit queue makes no progress, the kernel resets it after some seconds, and all flows of it wait. With
too little power, a card may lower its speed or switch ports off. Both are warnings: the driver usually recovers, and many
cards that get enough power report their slot. Those of DGX Spark do so at each boot, healthy or not, and are not counted. The
check counts the last week of this boot, without queues that the driver recovered.
Confirm manually: journalctl -k -b | grep -E 'timed out|TX timeout|insufficient power'
Side effects of the fix: None: it only reports.
Sources: https://github.com/torvalds/linux (net/sched/sch_generic.c, drivers/net/ethernet/mellanox/mlx5/core/events.c) ;
https://github.com/NVIDIA/NVSentinel (health-monitors/syslog-health-monitor/pkg/nicdriver: patterns that are not fatal) ;
https://github.com/NVIDIA/dgx-spark-playbooks/pull/108
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_cards import SMALL_SUPERCHIP, readable_names
from nodetune.checks.shared.kernel_events import RECENT, UPTIME, by_device, of_devices

SLOT = "insufficient power on the PCIe slot"


def observe(facts: FactsView) -> dict[str, str] | str:
    spark = any(SMALL_SUPERCHIP.search(name) for name in readable_names(facts))
    events = of_devices(facts, "kernel_log.nics", RECENT)
    return by_device([each for each in events if not (spark and SLOT in each["text"])], "disturbed") or ""


CHECK = Check(
    needs=("kernel_log.nics", "gpu.names", UPTIME),
    observe=observe,
    log=RECENT,
    accept=Empty("no such message"),
    remedy=manual(
        "Measure the link (nodetune verify). If it is slow or the messages repeat, update driver and firmware, and compare the "
        "slot and its power setting in the BIOS with those of a good node."
    ),
    severity="low",
    part_of="nic-failed",
)

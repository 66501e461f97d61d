"""Interrupts of a GPU go to CPUs of another NUMA node.

Why it matters: The driver learns of finished work and of faults by interrupts where programs block instead of polling.
Taken on a far node, each wake-up of a waiting thread crosses the link between the sockets. GPUs raise few of them, so
this matters for latency more than for throughput.
Confirm by hand: for i in /sys/bus/pci/devices/BDF/msi_irqs/*; do cat /proc/irq/${i##*/}/effective_affinity_list; done
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or told to leave these alone.
Sources: https://docs.kernel.org/core-api/irq/irq-affinity.html ;
https://github.com/Irqbalance/irqbalance
"""

from nodetune.conditions import BARE_METAL, SEVERAL_NUMA_NODES
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import irq_affinity
from nodetune.view import View


def observe(facts: View) -> dict[str, object]:
    """Each GPU with an interrupt elsewhere."""
    devices = facts["irq.devices"].items()
    gpus = {bdf: device for bdf, device in devices if device["kind"] == "gpu" and "remote" in device}
    told = "{remote} of {irqs} elsewhere (they go to CPUs {cpus})"
    return {bdf: told.format(**gpu) if gpu["remote"] else [] for bdf, gpu in gpus.items()}


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("interrupts on CPUs of the GPU's own node"),
    set="local",
    remedy=irq_affinity(),
    severity="low",
)

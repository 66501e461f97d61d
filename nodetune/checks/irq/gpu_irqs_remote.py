"""GPU interrupts go to CPUs of another NUMA node.

Why it matters: Where programs block instead of polling, the driver learns of finished work and of faults through
interrupts. If a far node takes them, each wake-up of a waiting thread crosses the link between the sockets. GPUs raise
few interrupts, so this affects latency more than throughput.
Confirm manually: for i in /sys/bus/pci/devices/BDF/msi_irqs/*; do grep . /proc/irq/${i##*/}/*_affinity_list; done
(an idle interrupt stays on its old CPU until it next comes: then its smp_affinity_list counts)
Side effects of the fix: irqbalance moves interrupts again unless it is stopped or configured to leave these alone.
Sources: https://docs.kernel.org/core-api/irq/irq-affinity.html ;
https://github.com/Irqbalance/irqbalance
"""

from nodetune.api import BARE_METAL, SEVERAL_NUMA_NODES, Check, Empty, FactsView, irq_affinity


def observe(facts: FactsView) -> dict[str, object]:
    """Return each GPU with an interrupt on another node."""
    devices = facts["irq.devices"].items()
    gpus = {bdf: device for bdf, device in devices if device["kind"] == "gpu" and "remote" in device}
    template = "{remote} of {irqs} on another node (on CPUs {cpus})"
    return {bdf: template.format(**gpu) if gpu["remote"] else [] for bdf, gpu in gpus.items()}


CHECK = Check(
    observe=observe,
    needs=("irq.devices",),
    applies=(BARE_METAL, SEVERAL_NUMA_NODES),
    accept=Empty("interrupts on CPUs of the GPU's own node"),
    set="local",
    remedy=irq_affinity(),
    severity="low",
    name="GPU interrupts",
)

"""The kernel argument irqaffinity= is set.

Why it matters: The argument sets the default mask for interrupts that are allocated later. On a node with several
network cards and GPUs, it puts interrupts of all of them on the same CPUs, near to some and far from others. Managed
interrupts (NVMe queues) ignore it. It is meant for hosts whose CPUs are partitioned manually.
Confirm manually: grep -o 'irqaffinity=[^ ]*' /proc/cmdline; cat /proc/irq/default_smp_affinity
Side effects of the fix: The change needs a reboot.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (irqaffinity) ;
https://docs.kernel.org/core-api/irq/irq-affinity.html
"""

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    arguments = {"now": facts["cmdline.running"], "next boot": facts["derived.next_arguments"]}
    return {when: each.get("irqaffinity", "") for when, each in arguments.items()}


CHECK = Check(
    needs=("cmdline.running", "derived.next_arguments"),
    observe=observe,
    accept=Empty("not set"),
    remedy=manual(
        "Remove irqaffinity= from GRUB_CMDLINE_LINUX* in /etc/default/grub and /etc/default/grub.d/, then update-grub "
        "(Debian, Ubuntu); or grubby --update-kernel=ALL --remove-args=irqaffinity (Red Hat). Reboot."
    ),
    severity="info",
    name="irqaffinity=",
)

"""Kernel arguments isolate CPUs from the scheduler.

Why it matters: The scheduler never moves work to or between CPUs named by isolcpus. Jobs that do not pin each thread
pile up on one core of their set while the others idle, which looks like a slow data loader. nohz_full and rcu_nocbs add
overhead to every system call and benefit only pinned polling threads. To keep system tasks away from jobs, confine
those tasks (systemd's AllowedCPUs=) instead.
Confirm manually: cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full; cat /proc/cmdline
Side effects of the fix: The change needs a reboot. A single-tenant server that pins its polling threads may want to
keep the arguments.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (isolcpus, nohz_full, rcu_nocbs) ;
https://github.com/redhat-performance/tuned (profile cpu-partitioning)
"""

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> dict[str, object]:
    """Return what each argument isolates now, and what it will isolate after the next boot."""
    later = facts.readable("derived.next_arguments", {})
    now = {
        "isolcpus": facts.get("cpu.isolated") or [],
        "nohz_full": facts.get("cpu.nohz_full") or [],
        "rcu_nocbs": facts.get("cmdline.running.rcu_nocbs") or [],
    }
    return {**now, **{f"{name} at the next boot": later.get(name, []) for name, cpus in now.items() if not cpus}}


CHECK = Check(
    observe=observe,
    needs=("cpu.isolated", "cpu.nohz_full", "cmdline.running.rcu_nocbs", "derived.next_arguments"),
    accept=Empty("no isolated CPUs"),
    remedy=manual(
        "Remove isolcpus=, nohz_full= and rcu_nocbs= from GRUB_CMDLINE_LINUX* in /etc/default/grub and "
        "/etc/default/grub.d/, then update-grub (Debian, Ubuntu); or grubby --update-kernel=ALL "
        "--remove-args='isolcpus nohz_full rcu_nocbs' (Red Hat). A tuned profile such as cpu-partitioning adds them "
        "again: tuned-adm active. Reboot."
    ),
    severity="medium",
)

"""Reading the time takes a detour through slow hardware.

Why it matters: Frameworks, profilers and network stacks read the clock very often. The processor's own counter answers
without a system call; hpet and acpi_pm need a slow bus access each time. The kernel falls back to them when it finds
the counter unstable, which points at firmware or at a hypervisor.
Confirm by hand: cat /sys/devices/system/clocksource/clocksource0/current_clocksource
Side effects of the fix: tsc=reliable as a kernel argument hides an unstable counter instead of curing it: time jumps.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (tsc=, clocksource=) ;
https://github.com/redhat-performance/tuned (profile network-latency)
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="kernel.clocksource",
    accept=OneOf(["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"]),
    remedy=manual(
        "Ask the kernel why: dmesg | grep -i -e clocksource -e tsc. When available_clocksource beside the file still "
        "lists tsc, write it to current_clocksource; otherwise update the firmware and reboot"
    ),
    severity="medium",
)

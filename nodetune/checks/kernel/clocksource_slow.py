"""The kernel clock source is slow.

Why it matters: Frameworks, profilers and network stacks read the clock very often. The processor's own counter answers
without a system call. hpet and acpi_pm need a slow bus access each time. The kernel falls back to them when it finds
the counter unstable, which indicates a firmware or hypervisor problem.
Confirm manually: cat /sys/devices/system/clocksource/clocksource0/current_clocksource
Side effects of the fix: The kernel argument tsc=reliable hides an unstable counter and does not fix it: the time then
jumps.
Sources: https://docs.kernel.org/admin-guide/kernel-parameters.html (tsc=, clocksource=) ;
https://github.com/redhat-performance/tuned (profile network-latency)
"""

from nodetune.api import Check, OneOf, manual

CHECK = Check(
    fact="kernel.clocksource",
    accept=OneOf(["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"]),
    remedy=manual(
        "Find the reason: dmesg | grep -i -e clocksource -e tsc. If "
        "/sys/devices/system/clocksource/clocksource0/available_clocksource still lists tsc: "
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource. Otherwise update the firmware and reboot."
    ),
    severity="medium",
    name="clock source",
)

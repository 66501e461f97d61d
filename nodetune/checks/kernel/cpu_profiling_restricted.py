"""Users cannot sample their programs with perf or Nsight Systems.

Why it matters: Above 2, the kernel refuses perf_event_open to ordinary users (Ubuntu and Debian patch that in, and set 4 and 3):
Nsight Systems then shows GPUs, and not what the CPUs did. The check is off: a site whose users profile switches it on.
Confirm manually: sysctl kernel.perf_event_paranoid; nsys status --environment
Side effects of the fix: Users can measure their own programs; the kernel's perf interface had security faults before.
Sources: https://docs.nvidia.com/nsight-systems/InstallationGuide/index.html (2 or less) ;
https://docs.kernel.org/admin-guide/perf-security.html
"""

from nodetune.api import AtMost, Check, manual

CHECK = Check(
    fact="sysctl.kernel.perf_event_paranoid",
    accept=AtMost(2),
    remedy=manual(
        "Put kernel.perf_event_paranoid = 2 into a file in /etc/sysctl.d, and run sysctl --system. Or let only members of a group "
        "profile: setcap cap_perfmon to the profiler (the second source)."
    ),
    severity="info",
)

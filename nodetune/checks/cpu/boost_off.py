"""CPU boost (turbo) is switched off.

Why it matters: Without it a core stays at its base clock however cool the package is. Much of what the host does for a
GPU is a single thread at a time (the training loop, kernel launches), and that is where boost gives most.
Confirm by hand: cat /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo
Side effects of the fix: More power and heat in the package. Firmware may have switched it off: then the write is
refused and the setting is in the BIOS. Some sites leave it off so that all nodes run alike.
Sources: https://docs.kernel.org/admin-guide/pm/cpufreq.html#frequency-boost-support ;
https://docs.kernel.org/admin-guide/pm/intel_pstate.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import cpufreq

CHECK = Check(
    fact="cpu.boost",
    accept=Equals(wanted=True),
    set=True,
    remedy=cpufreq("boost"),
    severity="medium",
)

"""vm.compaction_proactiveness is too high.

Why it matters: Proactive compaction makes huge pages available sooner by moving pages of running programs. The kernel's
documentation warns of latency spikes in unrelated programs, and of excessive work at extreme values.
Confirm manually: sysctl vm.compaction_proactiveness
Side effects of the fix: Huge pages may take longer to get on a node with fragmented memory.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#compaction-proactiveness
"""

from nodetune.api import AtMost, Check, sysctl

CHECK = Check(
    fact="sysctl.vm.compaction_proactiveness",
    accept=AtMost(20),
    set=20,
    remedy=sysctl("vm.compaction_proactiveness", boot_default=20),
    severity="low",
)

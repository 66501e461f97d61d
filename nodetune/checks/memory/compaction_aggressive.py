"""The kernel moves pages about in the background more than it does by default.

Why it matters: Proactive compaction makes huge pages quicker to get by moving the pages of running programs. The
kernel's own documentation warns of latency spikes in programs that have nothing to do with it, and of excessive work
at extreme values.
Confirm by hand: sysctl vm.compaction_proactiveness
Side effects of the fix: Huge pages may take longer to get on a node whose memory is fragmented.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#compaction-proactiveness
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.compaction_proactiveness",
    accept=AtMost(20),
    set=20,
    remedy=sysctl("vm.compaction_proactiveness", boot_default=20),
    severity="low",
)
